"""Draw the walk of one call of `zt.minimize` through the files of the library: docs/pictures/walk.png.

Run it as ``.venv/bin/python scripts/make_design_picture.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "walk.png"
WIDTH, HEIGHT = 3.0, 0.92
COLUMNS, ROWS = (1.6, 5.6, 9.6), (7.2, 5.5, 3.8, 2.1)
COLOURS = {"api": "#d9e8f5", "session": "#dff0d8", "rounds": "#fdebd0", "methods": "#f5dfe8", "evaluate": "#ececec"}

# number, file, what happens there, column, row
FILES = [
    (1, "api/minimizer.py", "minimize(fun, x0, k, budget=...)", 0, 0),
    (2, "api/arguments.py", "checks them all, makes a Task", 0, 1),
    (3, "api/optimizer.py", "makes the Session and its Ledger", 0, 2),
    (4, "session/machine.py", "opens a round, takes its values", 1, 1),
    (5, "rounds/search.py", "Search: a method at work", 2, 1),
    (6, "methods/paper/szoht.py", "plan(...) and update(...)", 2, 2),
    (7, "rounds/requests.py", "which points answer a request", 1, 2),
    (8, "session/loop.py", "the only loop: evaluate, deliver", 1, 0),
    (9, "evaluate/serial.py", "calls the user's function", 2, 0),
    (10, "rounds/advance.py", "the step, the best point, counts", 1, 3),
]
# from, to, label, sideways shift of both ends, and of the label
ARROWS = [
    (1, 2, "arguments", 0.0, (0.12, 0.0)),
    (2, 3, "Task", 0.0, (0.12, 0.0)),
    (3, 4, "open", 0.0, (-0.28, 0.25)),
    (4, 5, "what next?", 0.0, (0.0, 0.08)),
    (5, 6, "plan(state)", 0.0, (0.12, 0.0)),
    (6, 7, "Probes", 0.0, (0.0, 0.08)),
    (7, 4, "Plan", 0.6, (0.12, 0.0)),
    (4, 8, "open round", -0.6, (-0.1, 0.0)),
    (8, 9, "points", 0.17, (0.0, 0.06)),
    (9, 8, "values", -0.17, (0.0, -0.24)),
    (8, 4, "deliver", 0.6, (0.12, 0.0)),
    (4, 10, "all values", -1.85, (0.06, -1.15)),
    (10, 6, "update(state, answers, H)", 0.0, (1.0, -0.3)),
]


def main() -> None:
    """Draw the picture."""
    figure, axis = plt.subplots(figsize=(11.2, 7.2), dpi=110)
    axis.set_xlim(0.0, 11.2)
    axis.set_ylim(0.6, 7.8)
    axis.axis("off")
    places = {number: (COLUMNS[column], ROWS[row]) for number, _, _, column, row in FILES}
    for number, file, what, *_ in FILES:
        x, y = places[number]
        colour = COLOURS[file.split("/")[0]]
        corner = (x - WIDTH / 2, y - HEIGHT / 2)
        axis.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, "round,pad=0.02,rounding_size=0.12", fc=colour, ec="#555"))
        axis.text(x, y + 0.17, f"{number}  {file}", ha="center", va="center", fontsize=10.5, weight="bold")
        axis.text(x, y - 0.2, what, ha="center", va="center", fontsize=9)
    for start, end, label, shift, (right, up) in ARROWS:
        (x0, y0), (x1, y1) = places[start], places[end]
        across = x0 != x1
        if abs(shift) > WIDTH / 2:  # around the box between the two
            x = x0 + shift
            axis.plot([x0 - WIDTH / 2, x, x], [y0, y0, y1], color="#333", lw=1.2)
            begin, finish = (x, y1), (x1 - WIDTH / 2 - 0.03, y1)
            at = (x, (y0 + y1) / 2)
        elif across:
            sign = 1 if x1 > x0 else -1
            begin, finish = (x0 + sign * (WIDTH / 2 + 0.03), y0 + shift), (x1 - sign * (WIDTH / 2 + 0.03), y1 + shift)
            at = ((begin[0] + finish[0]) / 2, (begin[1] + finish[1]) / 2)
        else:
            sign = 1 if y1 > y0 else -1
            begin, finish = (x0 + shift, y0 + sign * (HEIGHT / 2 + 0.05)), (x1 + shift, y1 - sign * (HEIGHT / 2 + 0.05))
            at = (x0 + shift, (y0 + y1) / 2)
        axis.add_patch(
            FancyArrowPatch(begin, finish, arrowstyle="-|>", mutation_scale=14, color="#333", shrinkA=0, shrinkB=0)
        )
        beside = (
            {"ha": "left" if right > 0 else "right", "va": "center"} if not across else {"ha": "center", "va": "bottom"}
        )
        axis.text(at[0] + right, at[1] + up, label, fontsize=8.5, color="#333", **beside)
    note = (
        "Files 4 to 10 are one round, and the loop goes through them again and again. A round that does not fit into\n"
        "the budget is not opened: then F at the result is asked for, and optimizer.result() ends the walk."
    )
    axis.text(5.6, 0.95, note, ha="center", va="center", fontsize=9, color="#444")
    figure.savefig(PICTURE, bbox_inches="tight", pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
