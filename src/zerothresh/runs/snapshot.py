"""Snapshots: the state of a search as a .npz file of arrays of numbers and strings, which is replaced atomically."""

from __future__ import annotations

import ast
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.text import shorten
from zerothresh.rounds.states import KINDS
from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain

_MOST_HEADER = 4096  # bytes; an array with a longer header is refused
_MOST_ARRAYS = 1000  # a snapshot with more arrays is refused
_MOST_REASON = 200  # characters of an error that a message repeats


def write(path: Path, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a snapshot so that the file is complete or does not exist.

    The content is on the disk before it gets its name. The name is on the disk once the folder has been synced, which
    is left to the caller.

    Arguments
    ---------
    path: the file to write.
    meta: counts and numbers, as a JSON object.
    arrays: the arrays by name.
    """
    buffer = io.BytesIO()
    header = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {"meta": header, **arrays}.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array, order="C"), allow_pickle=False)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    fd = open_plain(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(fd, "wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a snapshot, whose content is not trusted.

    Returns
    -------
    The counts and numbers, and the arrays by name. Raises `RunError` if the file is damaged or forged.
    """
    fd = open_plain(path, os.O_RDONLY)
    try:
        with open(fd, "rb") as file, zipfile.ZipFile(file) as archive:
            whole = os.fstat(fd).st_size
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len(set(names)) != len(names) or len(names) > _MOST_ARRAYS or sum(e.file_size for e in entries) > whole:
                raise RunError(f"{path} declares more data than it holds")
            arrays = {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
        meta = json.loads(arrays.pop("meta").astype(np.uint8).tobytes())
        if not isinstance(meta, dict):
            raise RunError(f"{path} has no valid meta data")
    except RunError:
        raise
    except Exception as error:  # whatever a damaged or forged file makes the readers of zip, npy and JSON raise
        raise RunError(f"{path} is broken ({type(error).__name__}: {shorten(str(error), _MOST_REASON)})") from None
    return meta, arrays


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array; its declared size is compared with the bytes of the file before memory is allocated."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise RunError(f"{entry.filename} is packed (compressed or encrypted), which no run writes")
    data = archive.read(entry)
    version = np.lib.format.read_magic(io.BytesIO(data[:8]))
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(data[8 : 8 + width], "little")
    if length > _MOST_HEADER:
        raise RunError(f"{entry.filename} has a header of {length} bytes, but at most {_MOST_HEADER} are expected")
    header = ast.literal_eval(data[8 + width : 8 + width + length].decode("latin1"))
    dtype = np.dtype(header["descr"])
    shape = header["shape"]
    if dtype.kind not in KINDS or dtype.hasobject:
        raise RunError(f"{entry.filename} holds {dtype}, which no run writes")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise RunError(f"{entry.filename} declares the shape {shape}, which no array has")
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size != len(data) - 8 - width - length:
        raise RunError(f"{entry.filename} declares {size} bytes but holds {len(data) - 8 - width - length}")
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
