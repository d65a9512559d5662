"""`zerothresh export`: the trace and the best point of a run folder, as files for other programs."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zerothresh.cli.messages import BadInput, refusing, speaking

if TYPE_CHECKING:
    from zerothresh.session.trace import Trace


def export(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a run: what --run or run= named.")],
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|FILE.json", help="A row a step: step, nfev, nht, fun, support."),
    ] = None,
    best: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npy", help="The best point whose F is known, else the iterate."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
) -> None:
    """Write the trace and the best point of a run, as of its newest snapshot. Nothing is locked or changed."""
    with speaking():
        from zerothresh.basics.files import check_file, write
        from zerothresh.runs.inspection import read_run

        with refusing():
            for path in filter(None, _targets(trace, best)):
                check_file(path, overwrite=force)
            seen = read_run(run)
            made: list[tuple[Path, str | bytes, str]] = []
            if trace is not None:
                steps = seen.trace()
                made.append(
                    (trace, as_json(steps) if trace.suffix == ".json" else steps.to_csv(), f"{len(steps):,} steps")
                )
            if best is not None:
                point = seen.best()
                made.append((best, _npy(point), f"{(point != 0).sum()} non-zeros in {point.size:,} coordinates"))
            for path, content, what in made:
                try:
                    write(path, content)
                except OSError as error:
                    raise BadInput(f"{path} could not be written: {error.strerror}") from None
                typer.echo(f"{path}: {what}")
        beyond = seen.values + seen.failed
        if beyond:
            typer.echo(
                f"zerothresh: {beyond:,} calls are newer than the snapshot; going on with the run brings them in",
                err=True,
            )


def _targets(trace: Path | None, best: Path | None) -> tuple[Path | None, Path | None]:
    if trace is None and best is None:
        raise BadInput("name what to write: --trace trace.csv (or .json), --best best.npy, or both")
    if trace is not None and trace.suffix not in (".csv", ".json"):
        raise BadInput(f"--trace must end in .csv or .json, which tells the format, not {trace.name!r}")
    if best is not None and best.suffix != ".npy":
        raise BadInput(f"--best must end in .npy, not {best.name!r}")
    return trace, best


def as_json(trace: Trace) -> str:
    """A list of objects, one a step and a line; ``fun`` is null where F was not known."""
    columns = (trace.step.tolist(), trace.nfev.tolist(), trace.nht.tolist(), trace.fun.tolist(), trace.support)
    rows = [
        json.dumps({"step": s, "nfev": f, "nht": h, "fun": v if math.isfinite(v) else None, "support": at.tolist()})
        for s, f, h, v, at in zip(*columns, strict=True)
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def _npy(point: object) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, np.asarray(point), allow_pickle=False)
    return buffer.getvalue()
