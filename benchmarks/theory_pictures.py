"""Draw the pictures of benchmarks/theory.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import plane
from matplotlib import pyplot
from matplotlib.ticker import FixedLocator, FuncFormatter, ScalarFormatter
from PIL import Image

from zerothresh import theory
from zerothresh.api.plot import COLOURS

matplotlib.use("agg")
pyplot.rcParams.update({"font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8, "legend.frameon": False})


SCALE = pyplot.get_cmap("RdYlBu_r", 100)  # steps of the colour scale, so that the picture needs few colours


def _finish(figure: Any, path: Path, colours: int = 128) -> None:
    for axis in figure.axes:
        if axis.get_label() != "<colorbar>":
            axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100)
    with Image.open(path) as picture:  # few colours are enough, and the file has a third of the size
        picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    pyplot.close(figure)


def draw_inequalities(found: dict[str, Any], folder: Path) -> None:
    rows = [one for one in found["rows"] if "exact" not in one["what"] and not one["what"].startswith("bias")]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.5, 4.2), width_ratios=[1.25, 1], layout="constrained")
    names = [one["what"] for one in rows]
    colours = [COLOURS[0] if one["holds"] else COLOURS[1] for one in rows]
    left.barh(range(len(rows)), [one["largest"] for one in rows], color=colours, height=0.6)
    left.set_yticks(range(len(rows)), names, fontsize=7.5)
    left.invert_yaxis()
    left.set_xscale("log")
    left.axvline(1, color="black", linewidth=1)
    left.set_xlim(right=12)
    left.set_xlabel("largest measured / bound (1: no slack)")
    left.set_title("The proved bounds hold, and grow looser")
    run = found["run"]
    words, steps = run["words"], np.arange(1500)
    predicted = run["measured"][0] * words["rate"] ** (2 * steps) + words["floor"]
    right.semilogy(steps, predicted, color=COLOURS[1], label=r"theory: $(\gamma\rho)^{2t}$ + floor")
    right.semilogy(run["measured"], color=COLOURS[0], label="SZOHT, measured")
    right.axhline(words["floor"], color=COLOURS[1], linewidth=0.8, linestyle=":")
    right.set_title(f"SZOHT, d = {words['d']:.0f}, k = {words['k']:.0f}, q = {words['q']:,.0f}")
    right.set_xlabel("steps")
    right.set_ylabel(r"$E\|\theta - \theta^*\|^2$")
    right.legend()
    _finish(figure, folder / "theory-slack.png")


def draw_conflict(found: dict[str, Any], folder: Path) -> None:
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
    (a, b), (c, e) = axes
    error = found["error"]
    for colour, name in zip(COLOURS, [key for key in error if key != "q"], strict=False):
        mean, _, exact, bound = error[name]
        a.loglog(error["q"], mean, "o", color=colour, markersize=4)
        a.loglog(error["q"], exact, color=colour, label=f"{name}: exact, and measured (dots)")
        a.loglog(error["q"], bound, color=colour, linestyle="--", linewidth=1)
    a.plot([], [], "k--", linewidth=1, label="Lemma 2's bounds")
    a.set(xlabel="directions q", ylabel=r"$E\|\hat\nabla_I f-\nabla_I f\|^2 / \|\nabla f\|^2$")
    a.set_title("Gradient error falls with q (d = 100, s = 12)")
    a.legend()
    grown = found["expansion"]
    b.semilogx(grown["k"], grown["tight"], color=COLOURS[2], label="tight bound (Shen and Li)")
    b.semilogx(grown["k"][1:], grown["alpha"][1:], color=COLOURS[1], label=r"$\alpha$ of Lemma 1")
    b.semilogx(grown["k"], grown["worst"], "o", color=COLOURS[2], markersize=4, label="worst point found")
    b.axhline(1, color="black", linewidth=0.8)
    b.set(xlabel="non-zeros kept, k", ylabel=r"$\|H_k(\theta)-\theta^*\|^2 / \|\theta-\theta^*\|^2$")
    b.set_title("Expansivity falls with k (k* = 3)")
    b.legend()
    rates = found["rates"]
    for colour, name in zip(COLOURS, [key for key in rates if key != "k"], strict=False):
        c.semilogx(rates["k"], rates[name], color=colour, label=name)
    c.axhline(1, color="black", linewidth=0.8)
    c.set_ylim(0.96, 1.15)
    c.annotate("diverges", (4, 1.003), va="bottom")
    c.annotate("converges", (4, 0.997), va="top")
    c.set(xlabel="non-zeros kept, k", ylabel="SZOHT's factor per step (theory)")
    c.set_title("The conflict: small k expands, large k needs more directions")
    c.legend(loc="upper right")
    steps = found["reduced"]
    for colour, name in zip(COLOURS, [key for key in steps if key != "q"], strict=False):
        e.loglog(steps["q"], steps[name], "o-", color=colour, label=name, markersize=3.5)
    e.set(xlabel="directions q", ylabel=r"$E\|g-\nabla F\|^2 / \|\nabla F\|^2$, measured")
    e.set_title("A step near the anchor, with and without variance reduction")
    e.legend()
    _finish(figure, folder / "theory-conflict.png")


LAWS = {"own": "the paper's estimator", "common": "common directions"}


def draw_plane(found: dict[str, Any], folder: Path) -> None:
    size: dict[str, Any] = {"figsize": (13.5, 6.6), "sharex": True, "sharey": True, "layout": "constrained"}
    figure, axes = pyplot.subplots(len(LAWS), len(plane.METHODS), **size)
    for row, (law, words) in zip(axes, LAWS.items(), strict=True):
        for axis, name in zip(row, plane.METHODS, strict=True):
            mesh = _draw_cells(axis, found[law], name)
            _theory_allows(axis, name, found)
        row[0].set_ylabel(f"{words}\n\nnon-zeros kept, k")
    for axis, name in zip(axes[0], plane.METHODS, strict=True):
        axis.set_title(name)
    for axis in axes[-1]:
        axis.set_xlabel("directions q")
    bar = figure.colorbar(mesh, ax=axes, fraction=0.03, pad=0.01)
    bar.ax.set_label("<colorbar>")
    bar.set_label("gap left, $\\log_{10}$ of its share", labelpad=9)
    etas = found["own"]["eta"]
    words = f"The best of {len(etas)} learning rates from {min(etas):g} to {max(etas):g} in each cell. "
    words += "Dashed: 1/100 of the gap is left. Solid: 1/10,000 is left. "
    words += f"$d = {plane.D}$, $n = {plane.N}$, $k^* = {plane.K_STAR}$, $\\kappa = 1$."
    figure.suptitle(words, fontsize=10)
    _finish(figure, folder / "theory-plane.png", colours=256)  # the scale, and shades of the text
    _draw_rates(found["own"], folder)


def _draw_cells(axis: Any, law: dict[str, Any], name: str) -> Any:
    """Draw what one method leaves in each cell, and its contours."""
    qs, ks = law["q"], law["k"]
    edges = []
    for values in (qs, ks):  # halfway between neighbours, on a logarithmic axis
        logs = np.log2(values)
        inner = (logs[1:] + logs[:-1]) / 2
        edges.append(2 ** np.concatenate([[2 * logs[0] - inner[0]], inner, [2 * logs[-1] - inner[-1]]]))
    shown = np.log10(np.clip(plane.best(law["left"][name]), 1e-8, 1.0))
    mesh = axis.pcolormesh(*edges, shown, cmap=SCALE, vmin=-8, vmax=0, rasterized=True)
    for level, style in ((-2, "dashed"), (-4, "solid")):
        if shown.min() < level < shown.max():
            axis.contour(qs, ks, shown, levels=[level], colors="black", linewidths=1.6, linestyles=style)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(0.5, 4500)
    axis.set_ylim(0.7, 260)
    axis.xaxis.set_major_locator(FixedLocator([1, 4, 16, 64, 256, 1024]))
    axis.yaxis.set_major_locator(FixedLocator([1, 2, 4, 8, 16, 32, 64, 128]))
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.minorticks_off()
    return mesh


def _draw_rates(found: dict[str, Any], folder: Path) -> None:
    """Draw how the least q moves with the learning rate, at three k."""
    qs, etas, shown = found["q"], found["eta"], [k for k in (8, 32, 128) if k in found["k"]]
    goals = ((1.0, "not to diverge"), (1e-2, "to leave 1/100"), (1e-4, "to leave 1/10,000"))
    size = {"figsize": (11, 8.2), "sharex": True, "sharey": True, "layout": "constrained"}
    figure, axes = pyplot.subplots(len(goals), len(shown), squeeze=False, **size)
    for across, (goal, words) in zip(axes, goals, strict=True):
        across[0].set_ylabel(f"least q {words}")
        for axis, k in zip(across, shown, strict=True):
            for j, (colour, name) in enumerate(zip(COLOURS, plane.METHODS, strict=False)):
                cube = np.array(found["left"][name], float)
                ends = [plane.boundary(table, found["k"], qs, goal)[k] for table in cube]
                shift = 1.05 ** (j - 2)  # so that lines on top of each other are seen
                marks = [(eta, q * shift) for eta, q in zip(etas, ends, strict=True) if q is not None]
                if marks:
                    axis.loglog(*zip(*marks, strict=True), "o-", color=colour, markersize=4, linewidth=1.4)
                axis.plot([], [], "o-", color=colour, markersize=4, label=name)
            axis.xaxis.set_major_locator(FixedLocator(etas))
            axis.yaxis.set_major_locator(FixedLocator(qs))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.yaxis.set_major_formatter(ScalarFormatter())
            axis.set_ylim(0.7, 1.5 * qs[-1])
            axis.minorticks_off()
            axis.grid(alpha=0.25)
            axis.tick_params(labelbottom=True)
    for axis, k in zip(axes[0], shown, strict=True):
        axis.set_title(f"k = {k}")
    for axis in axes[-1]:
        axis.set_xlabel("learning rate $\\eta$")
    axes[0, 0].legend(loc="upper left")
    figure.suptitle("The paper's estimator; lines on top of each other are shifted a little", fontsize=10)
    _finish(figure, folder / "theory-plane-eta.png")


def _theory_allows(axis: Any, name: str, found: dict[str, Any]) -> None:
    """Mark the part of the plane in which a theorem promises convergence."""
    words = f"theory:\nk ≥\n{found['vr_k']:,}"
    if name in ("SZOHT", "FGZOHT"):
        wide = np.unique(np.geomspace(found["szoht_q"], 4096, 60).astype(int))
        allowed = [theory.szoht_k(d=plane.D, q=int(q), s2=plane.D, k_star=plane.K_STAR, kappa=1.0) for q in wide]
        pairs = [(q, one[0], one[-1]) for q, one in zip(wide, allowed, strict=True) if one]
        axis.fill_between(*zip(*pairs, strict=True), facecolor="none", edgecolor="green", hatch="////")
        words = "theory\nallows"
    axis.text(1600, 20, words, ha="center", fontsize=8, color="green")


def draw_complexity(found: list[dict[str, Any]], folder: Path) -> None:
    names = list(dict.fromkeys(one["name"] for one in found))
    figure, axes = pyplot.subplots(1, len(names), figsize=(12, 3.6), sharey=True, layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        for colour, method in zip(COLOURS, ("SZOHT", "VR-SZHT"), strict=False):
            (one,) = [row for row in found if row["name"] == name and row["method"] == method]
            at, calls = np.array(one["at"]), np.array(one["calls"], float)
            label = f"{method}: {one['exponent']:.2f} (paper {round(one['paper'], 2) + 0.0:.2f})"
            axis.loglog(at, calls, "o", color=colour, markersize=4, label=label)
            centre = np.exp(np.log(calls[np.isfinite(calls)]).mean()), np.exp(np.log(at).mean())
            axis.loglog(at, centre[0] * (at / centre[1]) ** one["exponent"], color=colour, linewidth=1)
            axis.loglog(at, centre[0] * (at / centre[1]) ** one["paper"], color=colour, linewidth=1, linestyle=":")
        axis.set_xlabel({"kappa": "κ"}.get(name, name))
        axis.legend(loc="upper left", fontsize=7, handlelength=0.8)
        axis.set_ylim(top=2e6)
        axis.xaxis.set_major_locator(FixedLocator(at))
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.minorticks_off()
    axes[0].set_ylabel("calls until the gap is 1/1000")
    figure.suptitle(
        "Calls against one value, the others fixed; solid: fitted, dotted: the paper's exponent", fontsize=10
    )
    _finish(figure, folder / "theory-complexity.png")


DRAW = {
    "inequalities": draw_inequalities,
    "conflict": draw_conflict,
    "plane": draw_plane,
    "complexity": draw_complexity,
}
