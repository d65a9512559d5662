"""Pictures of an attack: the perturbation, and the attacked images with the classes that the classifier predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.attacked import Attacked
from zerothresh.attack.images import ImageStack
from zerothresh.basics.foreign_text import printable

Picture = NDArray[Any]
_GREY = "#5a6475"


@dataclass(frozen=True)
class PictureRow:
    """A row in a table of pictures: a method's perturbation, and the images attacked with it."""

    name: str
    perturbation: Picture | None  # (rows, columns, channels), values from 0 to 1; None: the images as they are
    images: Sequence[Picture]
    captions: Sequence[str]  # the predicted class of each image
    bold: Sequence[bool]  # images that are fooled
    grey: Sequence[bool]  # images that the classifier gets wrong as they are; they are shown, but do not count


def as_pictures(stack: ImageStack, flat: NDArray[Any]) -> NDArray[np.float64]:
    """Flat images as pictures (images, rows, columns, channels) with values from 0 to 1."""
    low, high = stack.bounds
    return _drawable(np.clip((stack.pictures(np.asarray(flat, float)) - low) / (high - low), 0.0, 1.0))


def perturbation_picture(stack: ImageStack, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """The perturbation as a picture: grey where it is 0, brighter where it adds, darker where it subtracts.

    Its largest entry, or at most the width of the value range, has full brightness.
    """
    scale = min(float(np.abs(theta).max(initial=0.0)), stack.width) or 1.0
    return _drawable(np.clip(0.5 + 0.5 * stack.pictures(theta[None] / scale)[0], 0.0, 1.0))


def _drawable(pictures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pictures that matplotlib can draw: two channels, or more than four, are replaced by their mean."""
    return pictures if pictures.shape[-1] in (1, 3, 4) else pictures.mean(axis=-1, keepdims=True)


def class_names(classes: Sequence[str] | None, labels: NDArray[np.int64]) -> list[str]:
    """The name of each label's class, or its number; as in the paper, 'auto' is automobile and 'plane' airplane."""
    short = {"automobile": "auto", "airplane": "plane"}
    names = {} if not classes else {label: short.get(name, name) for label, name in enumerate(classes)}
    return [names.get(label, str(label)) for label in labels.tolist()]


def rows_before_and_after(found: Attacked, some: slice = slice(0, 10)) -> list[PictureRow]:
    """Two rows of pictures for some images of an attack: as they are, and attacked."""
    stack, classes = found.stack, found.classifier.classes
    wrong = (~found.right[some]).tolist()
    before, after = class_names(classes, found.before[some]), class_names(classes, found.after[some])
    attacked = stack.attacked(found.theta)
    return [
        PictureRow(
            "original",
            None,
            list(as_pictures(stack, stack.flat[some])),
            before,
            [False] * len(before),
            wrong,
        ),
        PictureRow(
            "attacked",
            perturbation_picture(stack, found.theta),
            list(as_pictures(stack, attacked[some])),
            after,
            found.fooled[some].tolist(),
            wrong,
        ),
    ]


def draw(rows: Sequence[PictureRow], heads: Sequence[str] = ()) -> Any:
    """Draw rows of pictures: the perturbation at the left, a caption under each image, bold where it is fooled.

    Arguments
    ---------
    rows: the rows, from top to bottom.
    heads: titles above the images of the first row; none by default.

    Returns
    -------
    A matplotlib figure.
    """
    from matplotlib.figure import Figure

    columns = 1 + max(len(row.images) for row in rows)
    height = 1.27 * len(rows) + 0.5
    figure = Figure(figsize=(0.95 * columns + 0.6, height), dpi=110)
    grid = figure.add_gridspec(
        len(rows), columns, left=0.075, right=0.995, top=1 - 0.25 / height, bottom=0.25 / height,
        wspace=0.06, hspace=0.3,
    )  # fmt: skip
    for line, row in enumerate(rows):
        pictures = [row.perturbation, *row.images]
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
            caption = f"({row.captions[column - 1]})" if grey else row.captions[column - 1]
            # A name of a class may come from anybody's file: no control characters, and $...$ is no formula.
            axis.set_xlabel(printable(caption), fontsize=8.5, labelpad=2, parse_math=False, **style)
            if line == 0 and heads:
                axis.set_title(heads[column - 1], fontsize=8, color=_GREY, pad=3)
    return figure
