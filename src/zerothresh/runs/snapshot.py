"""Snapshots: the state of a search as a .npz of plain arrays, written beside, synced and renamed."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain, sync_folder

_HEADER = 4096  # bytes of an array's header at the most
_KINDS = "biufU"  # dtypes that a state may hold: no objects, so nothing is ever unpickled


def write(path: Path, meta: dict[str, Any], arrays: dict[str, NDArray[Any]], *, sync: bool = True) -> None:
    """Write a snapshot that is there whole or not at all; with ``sync``, after a power cut too."""
    buffer = io.BytesIO()
    words = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {"meta": words, **arrays}.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array, order="C"), allow_pickle=False)
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    fd = open_plain(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(fd, "wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Meta and arrays of a snapshot; `RunError` if it is broken, or crafted to be dangerous."""
    fd = open_plain(path, os.O_RDONLY)
    try:
        with open(fd, "rb") as file, zipfile.ZipFile(file) as archive:
            whole = os.fstat(fd).st_size
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len(set(names)) != len(names) or len(names) > 1000 or sum(e.file_size for e in entries) > whole:
                raise RunError(f"{path} declares more than it holds")
            arrays = {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
        meta = json.loads(arrays.pop("meta").astype(np.uint8).tobytes())
        if not isinstance(meta, dict):
            raise RunError(f"{path} has no meta data")
    except RunError:
        raise
    except (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError, NotImplementedError, RecursionError) as error:
        raise RunError(f"{path} is broken ({type(error).__name__}: {error})") from None
    return meta, arrays


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array: its declared size is checked against the bytes that are there before memory is taken."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise RunError(f"{entry.filename} is packed, which no run writes")
    data = archive.read(entry)
    version = np.lib.format.read_magic(io.BytesIO(data[:8]))
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(data[8 : 8 + width], "little")
    if length > _HEADER:
        raise RunError(f"{entry.filename} has a header of {length} bytes")
    header = ast.literal_eval(data[8 + width : 8 + width + length].decode("latin1"))
    dtype = np.dtype(header["descr"])
    shape = header["shape"]
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise RunError(f"{entry.filename} holds {dtype}, which no run writes")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise RunError(f"{entry.filename} declares the shape {shape}")
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size != len(data) - 8 - width - length:
        raise RunError(f"{entry.filename} declares {size} bytes and holds {len(data) - 8 - width - length}")
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def flatten(state: Any, prefix: str = "state") -> dict[str, NDArray[Any]]:
    """A state (a dataclass of arrays, numbers and such dataclasses) as arrays by path."""
    out: dict[str, NDArray[Any]] = {}
    for field in dataclasses.fields(state):
        value, name = getattr(state, field.name), f"{prefix}.{field.name}"
        if dataclasses.is_dataclass(value):
            out |= flatten(value, name)
            continue
        array = np.asarray(value)
        if array.dtype.kind not in _KINDS:
            raise RunError(
                f"the method's state has {field.name} = {value!r}; a run folder can keep arrays, numbers, strings "
                "and dataclasses of these"
            )
        out[name] = array
    return out


def restore(template: Any, arrays: dict[str, NDArray[Any]], prefix: str = "state") -> Any:
    """A state like the template, with the values of a snapshot; kinds and dimensions must fit."""
    fields = {}
    for field in dataclasses.fields(template):
        old, name = getattr(template, field.name), f"{prefix}.{field.name}"
        if dataclasses.is_dataclass(old):
            fields[field.name] = restore(old, arrays, name)
            continue
        if name not in arrays:
            raise RunError(f"the snapshot has no {name}")
        array, like = arrays[name], np.asarray(old)
        if array.dtype.kind != like.dtype.kind or array.ndim != like.ndim:
            raise RunError(f"the snapshot's {name} is {array.dtype} {array.shape}, not like {like.dtype} {like.shape}")
        if isinstance(old, np.ndarray):
            array.flags.writeable = False
            fields[field.name] = array
        else:
            fields[field.name] = array.item()
    made = type(template)(**fields)
    carry = getattr(template, "carry", None)  # what a state knows besides, and is not kept
    if carry is not None:
        carry(made)
    return made
