"""The run folders of an attack, damaged or forged: refused with a sentence, or continued with the right count."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack_victims import victims

from zerothresh.attack import universal
from zerothresh.attack.predictions import _BASE
from zerothresh.runs import snapshot

CALL = {"k": 1, "budget": 400, "bounds": (-0.5, 0.5), "seed": 1}
EVALUATIONS = ("run-before", "run-after")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """An attack that has ended, with its folders and what it cost."""
    model, x, y = victims()
    home = tmp_path_factory.mktemp("attack")
    found = universal(model, x, y, **CALL, run=home / "run")
    assert model.seen == found.queries
    return model, x, y, home, found


def continued(attacked: Any, home: Path) -> Any:
    """Make the same call on another copy of the folders, and return what it found, or what it said."""
    model, x, y, _, _ = attacked
    model.seen = 0
    try:
        return universal(model, x, y, **CALL, run=home / "run")
    except ValueError as error:
        said = str(error)
    assert model.seen == 0  # before the first query
    assert str(home) in said
    assert any(advice in said for advice in ("name another", "restore", "not opened", "copy"))
    return said


def check(attacked: Any, home: Path) -> str:
    """Continue, and return what was refused; what is not refused has the same result, and every query is counted."""
    model, _, _, _, whole = attacked
    found = continued(attacked, home)
    if isinstance(found, str):
        return found
    assert found.queries == whole.queries + model.seen
    for name in ("theta", "before", "after"):
        assert np.array_equal(getattr(found, name), getattr(whole, name))
    return ""


def copied(attacked: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(attacked[3], tmp_path / "copy"))


def to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def to_hard_link(path: Path) -> None:
    os.link(path, path.parent.parent / "another-name")


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def to_bomb(path: Path) -> None:
    """A few kilobytes that unpack to a thousand times as many."""
    with open(path, "wb") as file:
        np.savez_compressed(file, meta=np.zeros(1 << 20, np.uint8), theta=np.zeros(1 << 20))


DAMAGES: dict[str, Any] = {
    "pipe": to_pipe,
    "link": to_link,
    "hard link": to_hard_link,
    "folder": to_folder,
    "half": to_half,
    "empty": lambda path: path.write_bytes(b""),
    "junk": lambda path: path.write_bytes(b"junk" * 100),
    "bomb": to_bomb,
    "removed": lambda path: path.unlink(),
}
FILES = ("run.json", "journal-0000000000.jsonl", "snapshot-0000000001.npz", "sessions.jsonl", "lock")


@pytest.mark.filterwarnings("ignore:the end of the run could not be written")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("folder", EVALUATIONS)
def test_a_damaged_file_is_refused_or_done_without(folder, file, damage, attacked, tmp_path):
    home = copied(attacked, tmp_path)
    DAMAGES[damage](home / folder / file)
    said = check(attacked, home)
    if file == "run.json":
        assert said if damage != "hard link" else not said  # nothing is written into a run that has ended


@pytest.mark.parametrize("folder", EVALUATIONS)
def test_a_changed_byte_is_refused_or_does_not_matter(folder, attacked, tmp_path):
    rng = np.random.default_rng(0)
    home = copied(attacked, tmp_path)
    for file in FILES[:4]:
        path = home / folder / file
        whole = path.read_bytes()
        for _ in range(8):
            changed = bytearray(whole)
            changed[rng.integers(len(whole))] ^= 1 << rng.integers(8)
            path.write_bytes(changed)
            check(attacked, home)
            shutil.rmtree(home)
            copied(attacked, tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link", "file", "other files"])
@pytest.mark.parametrize("folder", EVALUATIONS)
def test_what_lies_in_the_place_of_a_folder_is_refused_before_the_first_query(folder, kind, tmp_path):
    model, x, y = victims()
    path = tmp_path / folder
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "file":
        path.write_text("mine")
    elif kind == "link":
        (tmp_path / "home").mkdir()
        path.symlink_to(tmp_path / "home")
    else:
        path.mkdir()
        (path / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match=f"{folder} (is not a folder|is a link|holds other files)"):
        universal(model, x, y, **CALL, run=tmp_path / "run")
    assert model.seen == 0
    assert not (tmp_path / "home").exists() or not list((tmp_path / "home").iterdir())


def test_folders_of_which_one_is_missing_are_refused(attacked, tmp_path):
    home = copied(attacked, tmp_path)
    for folder, words in {"run-before": "does not hold the evaluation", "run": "holds no search"}.items():
        (home / folder).rename(home / "away")
        assert words in check(attacked, home)
        (home / "away").rename(home / folder)
    (home / "run-after").rename(home / "run-after-2")
    assert "an evaluation before it is missing" in check(attacked, home)


@pytest.mark.parametrize(
    ("arrays", "meta"),
    [
        ({}, {"nfev": 3}),
        ({}, {"nfev": 10**6}),
        ({}, {"nfev": "all"}),
        ({}, {"failed_calls": -5}),
        ({"value": 7.0}, {}),
        ({"value": -1.0}, {}),
        ({"value": 0.5}, {}),
        ({"value": 1e300}, {}),
        ({"value": float(9 * _BASE**2)}, {}),
        ({"value": float(4 * _BASE + 5)}, {}),
    ],
)
@pytest.mark.parametrize("folder", EVALUATIONS)
def test_a_forged_snapshot_is_refused_or_not_believed(folder, arrays, meta, attacked, tmp_path):
    home = copied(attacked, tmp_path)
    path = home / folder / "snapshot-0000000001.npz"
    (home / folder / "journal-0000000000.jsonl").unlink()
    known, stored = snapshot.read(path)
    if arrays:
        for name, array in stored.items():
            if array.dtype == np.float64 and array.size == 12:  # the answers for the 12 images
                stored[name] = np.full_like(array, arrays["value"])
    snapshot.write(path, {**known, **meta}, stored)
    if not check(attacked, home):
        assert not meta


def test_names_that_are_too_long_or_no_names_are_refused_before_the_first_query(tmp_path):
    model, x, y = victims()
    for run in (
        tmp_path / ("x" * 250),
        tmp_path / ("x" * 300),
        "",
        "a\0b",
        5,
        b"run",
        ["run"],
        tmp_path / "file" / "x",
    ):
        (tmp_path / "file").write_text("")
        with pytest.raises(ValueError, match=r"run folder|path of a folder|not a folder"):
            universal(model, x, y, **CALL, run=run)
    assert model.seen == 0
