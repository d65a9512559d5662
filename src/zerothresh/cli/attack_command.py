"""`zerothresh attack`: one sparse perturbation against one's own model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zerothresh.cli.messages import BadInput, print_rows, refusing, speaking

EXAMPLE = "Example: zerothresh attack --model net.onnx --images x.npz -k 20 --budget 6000 --out report/attack"

_HELP = """Attack an image classifier with one perturbation of a few pixels for all images, from its scores alone.

--images is an .npz file with `images` and `labels` (or x and y), and maybe `bounds`, the value range.

Without --model and --images, a small net of scikit-learn's digits is attacked, which needs no files.

The report holds the perturbation, the attacked images, and what was promised: k, the value range, the budget."""


def attack(
    model: Annotated[Path | None, typer.Option(help="An ONNX file.")] = None,
    images: Annotated[Path | None, typer.Option(help="An .npz file with images and labels.")] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="The most pixels (or channels) that are changed.")] = 20,
    budget: Annotated[int, typer.Option(help="The most queries; a query is one image seen by the model.")] = 6000,
    granularity: Annotated[str, typer.Option(help="pixel, or channel, as the paper counts.")] = "pixel",
    target: Annotated[int | None, typer.Option(help="A class that the images shall be taken for.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option(help="The value range of a pixel, unless a file says it.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="NHWC or NCHW, where the shape does not tell.")] = None,
    scores: Annotated[str | None, typer.Option(help="logits, probabilities or log-probabilities.")] = None,
    method: Annotated[str, typer.Option("--attack", help="best, or a method without settings: auto.")] = "best",
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    run: Annotated[Path | None, typer.Option(help="A run folder, to go on after a stop.")] = None,
    out: Annotated[Path, typer.Option(help="The report folder: new, or of an earlier attack.")] = Path("report/attack"),
) -> None:
    """Attack a classifier."""
    with speaking():
        from zerothresh.attack import digits, universal
        from zerothresh.attack.predictions import AttackStopped
        from zerothresh.reports import attack_page as attacked

        with refusing():
            if model is None and images is None:
                classifier: Any
                classifier, x, y = digits(3)
                declared = bounds
            elif model is None or images is None:
                raise BadInput("--model and --images go together: name both, or neither for the digits")
            else:
                classifier, (x, y, told) = model, _read(images)
                declared = bounds or told
            try:
                out.mkdir(parents=True, exist_ok=True)
            except OSError:
                raise BadInput(f"{out} is not a folder, and cannot be made one: name another for the report") from None
            if out.is_dir() and any(out.iterdir()) and not (out / "attack.json").exists():
                raise BadInput(f"{out} holds other files: name a new or empty folder for the report")
            try:
                found = universal(
                    classifier,
                    x,
                    y,
                    k=k,
                    budget=budget,
                    granularity=granularity,
                    targeted=target,
                    bounds=declared,
                    layout=layout,
                    scores=scores,
                    attack=method,
                    seed=seed,
                    run=run,
                )
            except ImportError as error:
                raise BadInput(str(error)) from None
            except AttackStopped as stop:
                typer.echo(str(stop), err=True)
                raise typer.Exit(1) from None
            attacked.write(out, found)
        shown = attacked.facts(found)
        shown.pop("promises")
        rows = {name.replace("_", " "): _word(value) for name, value in shown.items()}
        rows |= {promise: "kept" if kept else "BROKEN" for promise, kept in found.promises().items()}
        print_rows("Universal few-pixel attack", rows)
        typer.echo(f"Report: {out / 'index.html'}")
        if not found.complete:
            typer.echo(f"The search ended early, and says little: {found.ended}", err=True)
            raise typer.Exit(1)


attack.__doc__ = _HELP


def _word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _read(path: Path) -> tuple[Any, Any, tuple[float, float] | None]:
    """Images, labels and maybe bounds out of an .npz file."""
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            held = {name: arrays[name] for name in arrays.files} if hasattr(arrays, "files") else {}
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} is no .npz file of plain arrays: {error}") from None
    x = next((held[name] for name in ("images", "x") if name in held), None)
    y = next((held[name] for name in ("labels", "y") if name in held), None)
    if x is None or y is None:
        missing = "images" if x is None else "labels"
        raise BadInput(f"{path} has no {missing}: it holds {', '.join(held) or 'nothing'}, and needs images and labels")
    told = held.get("bounds")
    if told is not None and told.shape != (2,):
        raise BadInput(f"{path} has bounds of shape {told.shape}; they are two numbers, the lowest and the highest")
    return x, y, None if told is None else (float(told[0]), float(told[1]))
