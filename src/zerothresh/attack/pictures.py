"""Pictures of an attack: the perturbation, and the attacked images with what the classifier says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.universal_attack import Attacked

Picture = NDArray[Any]
_GREY = "#5a6475"


@dataclass(frozen=True)
class Row:
    """A method in a table of pictures: its perturbation, then the images."""

    name: str
    first: Picture | None  # (rows, columns, channels), from 0 to 1; None: nothing
    images: Sequence[Picture]
    words: Sequence[str]  # under each image
    bold: Sequence[bool]
    grey: Sequence[bool]  # wrong as they are: shown, and counted for nothing


def shown(stack: Any, flat: NDArray[Any]) -> NDArray[np.float64]:
    """Flat images as pictures with values from 0 to 1."""
    low, high = stack.bounds
    return _seen(np.clip((stack.pictures(np.asarray(flat, float)) - low) / (high - low), 0.0, 1.0))


def perturbation(stack: Any, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """The perturbation as a picture: grey where it is 0, brighter where it adds, darker where it takes away.

    Its largest entry is full, and everything beyond the width of the value range, where an image is full too.
    """
    scale = min(float(np.abs(theta).max(initial=0.0)), stack.width) or 1.0
    return _seen(np.clip(0.5 + 0.5 * stack.pictures(theta[None] / scale)[0], 0.0, 1.0))


def _seen(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pictures that can be shown: of two channels, or more than four, the mean."""
    return pictures if pictures.shape[-1] in (1, 3, 4) else pictures.mean(axis=-1, keepdims=True)


def names_of(classes: Sequence[str] | None, labels: NDArray[np.int64]) -> list[str]:
    """Short names: 'auto' for automobile and 'plane' for airplane, as the paper has them."""
    short = {"automobile": "auto", "airplane": "plane"}
    names = {} if not classes else {label: short.get(name, name) for label, name in enumerate(classes)}
    return [names.get(label, str(label)) for label in labels.tolist()]


def rows_of(found: Attacked, name: str, some: slice = slice(0, 10)) -> list[Row]:
    """Some images of an attack as rows: as they are, and attacked."""
    held, classes = found.stack, found.classifier.classes
    wrong = (~found.right[some]).tolist()
    before, after = names_of(classes, found.before[some]), names_of(classes, found.after[some])
    plain = [False] * len(before)
    attacked = held.attacked(found.theta)
    return [
        Row("original", None, list(shown(held, held.flat[some])), before, plain, wrong),
        Row(
            name,
            perturbation(held, found.theta),
            list(shown(held, attacked[some])),
            after,
            found.fooled[some].tolist(),
            wrong,
        ),
    ]


def draw(rows: Sequence[Row], heads: Sequence[str] = ()) -> Any:
    """A figure with a row a method: its perturbation at the left, a label under each image, bold where it changed."""
    from matplotlib.figure import Figure

    columns = 1 + max(len(row.images) for row in rows)
    height = 1.27 * len(rows) + 0.5
    figure = Figure(figsize=(0.95 * columns + 0.6, height), dpi=110)
    grid = figure.add_gridspec(
        len(rows), columns, left=0.075, right=0.995, top=1 - 0.25 / height, bottom=0.25 / height,
        wspace=0.06, hspace=0.3,
    )  # fmt: skip
    for line, row in enumerate(rows):
        pictures = [row.first, *row.images]
        for column, picture in enumerate(pictures):
            axis = figure.add_subplot(grid[line, column])
            axis.set_xticks([])
            axis.set_yticks([])
            if column == 0:
                axis.set_ylabel(row.name, fontsize=8.5, fontweight="bold", labelpad=4)
            if picture is None:
                for side in axis.spines.values():
                    side.set_visible(False)
                axis.text(0.5, 0.5, "as it is", ha="center", va="center", fontsize=8, color=_GREY)
                axis.set_box_aspect(1)
                continue
            axis.imshow(
                picture[..., 0] if picture.shape[-1] == 1 else picture, vmin=0, vmax=1, cmap="gray",
                interpolation="nearest",
            )  # fmt: skip
            for side in axis.spines.values():
                side.set(linewidth=0.6, color=_GREY)
            if column == 0:
                axis.set_xlabel("θ", fontsize=8.5, labelpad=2)
                continue
            bold, grey = row.bold[column - 1], row.grey[column - 1]
            style: Any = {"fontweight": "bold", "color": "#b3261e"} if bold else {"color": _GREY if grey else "black"}
            words = f"({row.words[column - 1]})" if grey else row.words[column - 1]
            axis.set_xlabel(words, fontsize=8.5, labelpad=2, **style)
            if line == 0 and heads:
                axis.set_title(heads[column - 1], fontsize=8, color=_GREY, pad=3)
    return figure
