"""`zerothresh export`: write the trace and the best point of a run folder to files for other programs."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zerothresh.cli.messages import BadInput, refusing, say, speaking

if TYPE_CHECKING:
    from zerothresh.session.trace import Trace


def export(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="The run folder that --run or run= named.")],
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|FILE.json", help="Write one row per step: step, nfev, nht, fun, support."),
    ] = None,
    best: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="Write the best point whose F is known; if there is none, the last iterate."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write the trace and the best point of a run to files, as of its newest snapshot.

    The run is neither locked nor changed, and may be running.
    """
    with speaking():
        from zerothresh.basics.files import check_file, write
        from zerothresh.runs.inspection import read_run

        with refusing():
            for path in filter(None, _targets(trace, best)):
                check_file(path, overwrite=force)
            stored = read_run(run)
            contents: list[tuple[Path, str | bytes, str]] = []
            if trace is not None:
                steps = stored.trace()
                contents.append(
                    (trace, as_json(steps) if trace.suffix == ".json" else steps.to_csv(), f"{len(steps):,} steps")
                )
            if best is not None:
                point = stored.best()
                contents.append((best, _npy(point), f"{(point != 0).sum()} non-zeros in {point.size:,} coordinates"))
            for path, content, what in contents:
                try:
                    write(path, content)
                except OSError as error:
                    raise BadInput(f"{path} could not be written: {error.strerror}") from None
                say(f"{path}: {what}")
        newer = stored.values + stored.failed
        if newer:
            say(
                f"zerothresh: {newer:,} calls are newer than the snapshot; continue the run to include them",
                err=True,
            )


def _targets(trace: Path | None, best: Path | None) -> tuple[Path | None, Path | None]:
    """Return the files to write, or refuse names that do not tell the format."""
    if trace is None and best is None:
        raise BadInput("name what to write: --trace trace.csv (or .json), --best best.npy, or both")
    if trace is not None and trace.suffix not in (".csv", ".json"):
        raise BadInput(f"--trace must end in .csv or .json, which sets the format, not {trace.name!r}")
    if best is not None and best.suffix != ".npy":
        raise BadInput(f"--best must end in .npy, not {best.name!r}")
    return trace, best


def as_json(trace: Trace) -> str:
    """Return the trace as a JSON list with one object per step, one per line; ``fun`` is null where F is not known."""
    columns = (trace.step.tolist(), trace.nfev.tolist(), trace.nht.tolist(), trace.fun.tolist(), trace.support)
    rows = [
        json.dumps({"step": s, "nfev": f, "nht": h, "fun": v if math.isfinite(v) else None, "support": at.tolist()})
        for s, f, h, v, at in zip(*columns, strict=True)
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def _npy(point: object) -> bytes:
    """Return an array in the format of .npy files."""
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, np.asarray(point), allow_pickle=False)
    return buffer.getvalue()
