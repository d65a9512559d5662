"""Reports for the tests: a whole one that all worker processes of pytest share, and a small experiment."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zerothresh.cli.app import app
from zerothresh.reproduce.ridge import experiments
from zerothresh.reproduce.ridge.protocol import Experiment

BUDGET = 4_200  # the first step of LSVRG-SZHT needs 4,020 calls
LABELS = ("FGZOHT", "SZOHT")  # of the small experiment


def command(*arguments: object):
    """Run `zerothresh reproduce` in this process."""
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"COLUMNS": "80"})


def small_ridge(*, quick: bool = False, seed: int = 0) -> Experiment:
    """The quick synthetic experiment with two methods and two learning rates: enough for all kinds of files."""
    whole = experiments.synthetic(quick=quick, seed=seed)
    races = tuple(race for race in whole.races if race.entry.name in LABELS)
    return replace(whole, races=races, etas=whole.etas[2:4])


@contextmanager
def small_experiment() -> Iterator[None]:
    """Let `zerothresh reproduce ridge` run the small experiment, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(experiments.EXPERIMENTS, "ridge", small_ridge)
        yield


@contextmanager
def without_drawing() -> Iterator[None]:
    """Leave figures empty, where a test is not about them: drawing takes longer than all else."""
    empty = lambda figure: (b"", b"", b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zerothresh.reproduce.ridge.ridge_figures.saved", empty)
        patch.setattr("zerothresh.reports.figures.saved", empty)
        yield


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A temporary folder in memory, if the system has one: hundreds of runs wait for the disk otherwise."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="zerothresh-test-", dir=memory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Reported:
    """A report, and what the command printed."""

    folder: Path
    stdout: str
    stderr: str


def shared(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made once, by whichever process of pytest comes first; the others wait for it."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    try:
        import fcntl
    except ImportError:  # not on this system: each process makes its own
        folder = factory.mktemp(name)
        make(folder)
        return folder
    folder = root / name
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system releases it if this process dies
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / "made").touch()
    return folder


def whole_report(factory: pytest.TempPathFactory) -> Reported:
    """The report of the quick experiment with a small budget."""

    def make(folder: Path) -> None:
        with memory_folder() as memory:
            outcome = command("ridge", "--quick", "--budget", BUDGET, "--jobs", 1, "--out", memory / "ridge")
            assert outcome.exit_code == 0, outcome.output
            shutil.copytree(memory / "ridge", folder / "ridge")
        printed = {"stdout": outcome.stdout.replace(str(memory), str(folder)), "stderr": outcome.stderr}
        (folder / "printed.json").write_text(json.dumps(printed))

    folder = shared(factory, "whole-report", make)
    return Reported(folder / "ridge", **json.loads((folder / "printed.json").read_text()))


def small_report(factory: pytest.TempPathFactory) -> Path:
    """The report of the small experiment, computed in one process without an interruption."""

    def make(folder: Path) -> None:
        with memory_folder() as memory, small_experiment():
            outcome = command("ridge", "--quick", "--budget", BUDGET, "--jobs", 1, "--out", memory / "ridge")
            assert outcome.exit_code == 0, outcome.output
            shutil.copytree(memory / "ridge", folder / "ridge")

    return shared(factory, "small-report", make) / "ridge"
