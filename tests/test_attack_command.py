from __future__ import annotations

import json

import numpy as np
import pytest
from attack_victims import NET, command

import zerothresh as zt


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    table = zt.datasets.load_cifar10_paper("bird")
    path = tmp_path_factory.mktemp("birds") / "x.npz"
    np.savez(path, images=table.data.astype(np.float32) / 255 - 0.5, labels=table.target)
    return path


def test_the_command_attacks_a_net_and_writes_a_report(birds, tmp_path):
    done = command("attack", "--model", NET, "--images", birds, "-k", 20, "--budget", 900, "--out", tmp_path / "report")
    assert done.exit_code == 0, done.output
    assert "at most 20 pixels changed" in done.output
    told = json.loads((tmp_path / "report" / "attack.json").read_text())
    assert told["promises"] == {
        "at most 20 pixels changed": True,
        "values within [-0.5, 0.5]": True,
        "at most 900 queries": True,
    }
    assert told["queries"] <= 900
    assert told["fooled"] > 5
    page = (tmp_path / "report" / "index.html").read_text()
    assert "promise: at most 900 queries" in page
    with np.load(tmp_path / "report" / "attack.npz") as held, np.load(birds) as given:
        assert np.allclose(held["images"], np.clip(given["images"] + held["perturbation"], -0.5, 0.5), atol=1e-6)
        assert ((held["perturbation"] != 0).any(axis=2)).sum() <= 20
    again = command("attack", "--model", NET, "--images", birds, "-k", 5, "--budget", 100, "--out", tmp_path / "report")
    assert again.exit_code == 0


def test_the_command_refuses_what_cannot_be_attacked(birds, tmp_path):
    np.savez(tmp_path / "unlabelled.npz", images=np.zeros((2, 32, 32, 3)))
    np.savez(tmp_path / "bright.npz", images=np.full((2, 32, 32, 3), 255), labels=np.zeros(2, int))
    np.savez(tmp_path / "small.npz", images=np.zeros((2, 28, 28, 3)), labels=np.zeros(2, int))
    (tmp_path / "text.npz").write_text("nothing")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    for words, said in [
        (["--model", NET], "--model and --images go together"),
        (["--model", NET, "--images", tmp_path / "nowhere.npz"], "nowhere.npz does not exist"),
        (["--model", NET, "--images", tmp_path / "text.npz"], "is not an .npz file of plain arrays"),
        (
            ["--model", NET, "--images", tmp_path / "unlabelled.npz"],
            "has no labels: it needs the arrays images and labels, and contains images",
        ),
        (["--model", NET, "--images", tmp_path / "bright.npz"], "outside of the value range [-0.5, 0.5]"),
        (["--model", NET, "--images", tmp_path / "small.npz"], "takes images of shape (3, 32, 32)"),
        (["--model", birds, "--images", birds], "is not a net that onnxruntime can read"),
        (["--model", NET, "--images", birds, "--out", tmp_path / "full"], "contains other files"),
        (["--model", NET, "--images", birds, "--attack", "nothing"], "method"),
    ]:
        done = command("attack", *words, *([] if "--out" in words else ["--out", tmp_path / "out"]))
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.split()), done.output
    assert (tmp_path / "full" / "file").read_text() == "mine"
