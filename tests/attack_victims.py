"""What the tests of attacks share: a small linear classifier, its images, the shipped net, and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import zerothresh as zt

NET = Path(zt.attack.__file__).parent / "nets" / "cifar10_small.onnx"


class Linear:
    """A classifier of colour images, (images, 6, 5, 3) or channels first, with weights of its own."""

    def __init__(self, classes=4, first=False, seed=1):
        self.weights = np.random.default_rng(seed).normal(size=(6 * 5 * 3, classes))
        self.first, self.seen, self.batches = first, 0, []

    def __call__(self, images):
        self.seen += len(images)
        self.batches.append(len(images))
        shown = images.transpose(0, 2, 3, 1) if self.first else images
        assert shown.shape[1:] == (6, 5, 3)
        return shown.reshape(len(images), -1).astype(float) @ self.weights


def images(n=12, seed=2):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 6, 5, 3)).astype(np.float32)


def victims(n=12, **options):
    model = Linear(**options)
    x = images(n)
    y = model(x.transpose(0, 3, 1, 2) if model.first else x).argmax(axis=1)
    model.seen, model.batches = 0, []
    return model, x, y


def rounded(images):
    bright = np.round(1 / (1 + np.exp(-12 * (images.reshape(len(images), -1).mean(axis=1) - 0.5))), 1)
    return np.stack([bright, 1 - bright], axis=1)


def command(*words: Any) -> Any:
    """Run `zerothresh` with some words, in this process."""
    from typer.testing import CliRunner

    from zerothresh.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "150"})
