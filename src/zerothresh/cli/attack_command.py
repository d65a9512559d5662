"""`zerothresh attack`: one sparse perturbation against a user's own model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zerothresh.cli.long_run_log import long_run_log
from zerothresh.cli.messages import FAILED, BadInput, print_rows, refusing, say, speaking

EXAMPLE = "Example: zerothresh attack --model net.onnx --images x.npz -k 20 --budget 6000 --out report/attack"

_HELP = """Attack an image classifier with one perturbation of a few pixels for all images, using only its scores.

--images is an .npz file with the arrays images and labels (or x and y), and optionally bounds, the value range.

With --ks, it finds a perturbation for each of several k in one search, and the smallest one that fools all images.

Without --model and --images, a small net for scikit-learn's digits is attacked, which needs no files.

The report contains the perturbation, the attacked images, and a check of k, the value range and the budget."""


def attack(
    model: Annotated[Path | None, typer.Option(help="The model, an ONNX file.")] = None,
    images: Annotated[Path | None, typer.Option(help="An .npz file with images and labels.")] = None,
    k: Annotated[
        int | None, typer.Option("--k", "-k", help="The most pixels (or channels) to change; 20 by default.")
    ] = None,
    ks: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Several k in one search: 1,2,5,10,20, or 1:5 for all from 1 to 5."),
    ] = None,
    budget: Annotated[int, typer.Option(help="The most queries; a query is one image shown to the model.")] = 6000,
    granularity: Annotated[
        str, typer.Option(help="What k counts: pixel, or channel (single numbers, as in the paper).")
    ] = "pixel",
    target: Annotated[
        int | None, typer.Option(help="The class that the images should be taken for; by default any wrong class.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(help="The value range of a pixel, if neither the model nor the images declare it."),
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="NHWC or NCHW, if it cannot be recognised from the shape of the images.")
    ] = None,
    scores: Annotated[
        str | None, typer.Option(help="logits, probabilities or log-probabilities; recognised by default.")
    ] = None,
    method: Annotated[
        str, typer.Option("--attack", help="The search: best, or a method that needs no settings, such as auto.")
    ] = "best",
    seed: Annotated[int, typer.Option(help="The seed of the search.")] = 0,
    run: Annotated[
        Path | None, typer.Option(help="A run folder, so that the same command continues a stopped attack.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder of the report: a new one, or that of an earlier attack.")
    ] = Path("report/attack"),
) -> None:
    """Attack a classifier."""
    with speaking():
        from zerothresh.attack import AttackPath, digits, universal
        from zerothresh.attack.predictions import AttackStopped
        from zerothresh.basics.files import check_folder
        from zerothresh.cli.load import whole_numbers
        from zerothresh.reports import attack_page, attack_path_page

        with refusing():
            if k is not None and ks is not None:
                raise BadInput("--k and --ks exclude each other: give --k for one perturbation, or --ks for several")
            wanted: dict[str, Any] = {"k": 20 if k is None else k}
            if ks is not None:
                wanted = {"ks": whole_numbers("--ks", ks)}
            if model is None and images is None:
                classifier: Any
                classifier, x, y = digits(3)
                declared = bounds
            elif model is None or images is None:
                raise BadInput("--model and --images go together: name both, or neither to attack the digits")
            else:
                classifier, (x, y, bounds_of_file) = model, _read(images)
                declared = bounds or bounds_of_file
            try:
                out.mkdir(parents=True, exist_ok=True)
                is_taken = any(out.iterdir()) and not (out / "attack.json").exists()
            except OSError:
                raise BadInput(f"{out} is not a folder and cannot be made one: name another for the report") from None
            if is_taken:
                raise BadInput(f"{out} contains other files: name a new or empty folder for the report")
            check_folder(out)
            try:
                found = long_run_log()(universal)(
                    classifier,
                    x,
                    y,
                    **wanted,
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
                say(f"zerothresh: {stop}", err=True)
                raise typer.Exit(FAILED) from None
            except (ValueError, TypeError, OSError):
                raise
            except Exception as error:  # of the model, or of the library that runs it
                reason = (str(error).splitlines() or [""])[0]
                say(f"zerothresh: the model failed: {type(error).__name__}: {reason}", err=True)
                raise typer.Exit(FAILED) from None
            if isinstance(found, AttackPath):
                attack_path_page.write_path(out, found)
                facts = attack_path_page.path_facts(found)
                say(repr(found))
            else:
                attack_page.write(out, found)
                facts = attack_page.facts(found)
        promises, _ = facts.pop("promises"), facts.pop("path", None)
        rows = {name.replace("_", " "): _formatted(value) for name, value in facts.items()}
        rows |= {promise: "kept" if kept else "BROKEN" for promise, kept in promises.items()}
        print_rows("Universal few-pixel attack", rows)
        say(f"Report: {out / 'index.html'}")
        if not found.complete:
            say(f"The search ended early, so that few fooled images prove little: {found.ended}", err=True)
            raise typer.Exit(FAILED)


attack.__doc__ = _HELP


def _formatted(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_formatted, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _read(path: Path) -> tuple[Any, Any, tuple[float, float] | None]:
    """Read images, labels and, if they are there, bounds from an .npz file."""
    from zerothresh.cli.load import read_arrays

    arrays, names = read_arrays(path, ("images", "x", "labels", "y", "bounds"))
    x = next((arrays[name] for name in ("images", "x") if name in arrays), None)
    y = next((arrays[name] for name in ("labels", "y") if name in arrays), None)
    if x is None or y is None:
        missing = "images" if x is None else "labels"
        raise BadInput(
            f"{path} has no {missing}: it needs the arrays images and labels, and contains "
            f"{', '.join(names) or 'nothing'}"
        )
    bounds = arrays.get("bounds")
    if bounds is not None and (bounds.shape != (2,) or bounds.dtype.kind not in "fiu"):
        raise BadInput(
            f"{path} has bounds of shape {bounds.shape} ({bounds.dtype}); they must be two numbers, the lowest and "
            "highest"
        )
    return x, y, None if bounds is None else (float(bounds[0]), float(bounds[1]))
