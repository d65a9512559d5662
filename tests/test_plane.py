"""The fast runs of benchmarks/plane.py against runs of the library's methods on the same problems."""

from __future__ import annotations

import json
import math
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerothresh as zt

COMMON = partial(zt.Estimator, directions="sphere", common=True)


@pytest.fixture(scope="module")
def plane() -> Any:
    folder = str(Path(__file__).parents[1] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        import plane

        return plane
    finally:
        sys.path.remove(folder)


ETA, Q, KS = 0.1, 32, (2, 8)
SEEDS = 9  # the medians of two such samples differ by a factor of up to 1.7, methods by orders of magnitude
FACTOR = 2.5


@pytest.fixture(scope="module", params=[True, False], ids=["own", "common"])
def law(request: Any, plane: Any) -> tuple[bool, np.ndarray]:
    """Whether components have their own directions, and the medians over seeds of the gap left, (method, k)."""
    own = request.param
    return own, np.median([plane.runs(ETA, Q, KS, seed, own)[0] for seed in range(SEEDS)], axis=0)


@pytest.mark.parametrize("name", ["SZOHT", "FGZOHT", "SAGA-SZHT", "VR-SZHT", "SARAH-SZHT"])
def test_the_fast_runs_are_those_of_the_library(plane, law, name):
    own, fast = law
    epochs = {"m": plane.M}
    method = {
        "SZOHT": zt.SZOHT(ETA),
        "FGZOHT": zt.FGZOHT(ETA),
        "SAGA-SZHT": zt.SAGASZHT(ETA),
        "VR-SZHT": zt.VRSZHT(ETA, **epochs),
        "SARAH-SZHT": zt.SARAHSZHT(ETA, **epochs),
    }[name]
    steps = plane.steps_of(ETA)
    for k, expected in zip(KS, fast[plane.METHODS.index(name)], strict=True):
        ends = []
        for seed in range(SEEDS):
            box = plane.problem(seed)
            estimator = zt.Estimator.paper(q=Q, mu=plane.MU) if own else COMMON(q=Q, mu=plane.MU)
            first, gaps, calls = box.gap(np.zeros(box.d)), [], 0
            for state in zt.iterate(
                box, None, k, budget=10**9, method=method, estimator=estimator, seed=seed, monitor=box.gap
            ):
                if state.nht > len(gaps):
                    gaps.append(state.fun)
                if state.nht == steps:
                    calls = state.nfev
                    break
            assert calls == plane.calls_of(name, steps, Q)
            ends.append(np.median(gaps[-plane.LAST :]) / first)
        assert 1 / FACTOR < np.median(ends) / expected < FACTOR


@pytest.mark.parametrize("q", [1, 7])
def test_the_mean_of_estimates_with_own_directions_has_the_moments_of_eq_3(plane, q):
    rng = np.random.Generator(np.random.SFC64(q))
    centres = plane.problem(0).centres.astype(np.float32)
    theta = np.zeros((1, plane.D), np.float32)
    theta[0, :3] = 2.0, -1.0, 0.5
    residuals = theta - centres
    gradient = residuals.mean(axis=0)

    def drawn() -> np.ndarray:
        blocks = [plane.unit_vectors(rng, q) for _ in centres]
        return np.mean(
            [plane.estimates(r[None], u)[0] + plane.part_of_mu(u) for r, u in zip(residuals, blocks, strict=True)],
            axis=0,
        )

    draws = 1500  # the standard error of a mean square is then a few percent
    slow = np.array([drawn() for _ in range(draws)]) - gradient
    fast = np.array([plane.mean_of_own(rng, theta, centres, q)[0] for _ in range(draws)]) - gradient
    error = (slow**2).mean() ** 0.5 * draws**-0.5
    for sample in (slow, fast):
        assert abs(sample.mean()) < 5 * error / plane.D**0.5
    towards = gradient / np.linalg.norm(gradient)
    for measure in (lambda x: (x**2).sum(axis=1), lambda x: (x @ towards) ** 2, lambda x: x[:, 0] ** 2):
        one, other = measure(slow), measure(fast)
        noise = np.hypot(one.std(), other.std()) * draws**-0.5
        assert abs(one.mean() - other.mean()) < 4 * noise


def test_what_diverges_is_infinite_and_a_small_learning_rate_mends_it(plane):
    j, k = plane.METHODS.index("VR-SZHT"), (32,)
    assert plane.runs(0.1, 1, k, 0)[0][j, 0] == np.inf
    left, below = plane.runs(0.001, 1, k, 0)
    assert left[j, 0] < 1e-3
    assert 0 < below[0, j, 0] < below[1, j, 0]


DOCS = Path(__file__).parents[1] / "docs"


class Measured:
    """The numbers of docs/theory.json about the plane, as the page writes them."""

    def __init__(self) -> None:
        self.store = json.loads((DOCS / "theory.json").read_text())
        self.plane = self.store["plane"]

    def left(self, law: str, name: str) -> np.ndarray:
        """The gaps left, by (eta, k, q)."""
        return np.array(self.plane[law]["left"][name], float)

    def at(self, law: str, name: str, eta: float, k: int, q: int) -> float:
        one = self.plane[law]
        return float(self.left(law, name)[one["eta"].index(eta), one["k"].index(k), one["q"].index(q)])

    def one_direction(self, law: str, name: str, etas: float = 0.0) -> dict[int, float]:
        """The gap left with q = 1 and the best eta from ``etas`` on, by k."""
        one = self.plane[law]
        good = [place for place, eta in enumerate(one["eta"]) if eta >= etas]
        return dict(zip(one["k"], self.left(law, name)[good, :, 0].min(axis=0), strict=True))

    def calls(self, law: str, name: str, goal: str, k: int = 32) -> list[float]:
        """The calls with the best eta, by q."""
        return self.plane[law]["calls"][goal][name][self.plane[law]["k"].index(k)]

    def least(self, plane: Any, law: str, name: str, k: int) -> list[int | None]:
        """The least q that does not diverge, by eta."""
        one = self.plane[law]
        return [plane.boundary(table, one["k"], one["q"], 1.0)[k] for table in self.left(law, name)]

    def ratios(self, name: str, other: str) -> list[float]:
        """The mean ratio of what two methods leave by the paper's law where neither diverges, by q.

        The cells are those with k >= 8 and eta <= 0.01.
        """
        ks, etas = (np.array(self.plane["own"][key]) for key in ("k", "eta"))
        pair = [self.left("own", one)[etas <= 0.01][:, ks >= 8] for one in (name, other)]
        fine = (pair[0] < 1) & (pair[1] < 1)
        logs = [np.log(one, where=fine, out=np.zeros_like(one)) for one in pair]
        return np.exp((logs[0] - logs[1]).sum(axis=(0, 1)) / fine.sum(axis=(0, 1))).tolist()


def gap(value: float, up: bool = False) -> str:
    """Write a gap with two digits, rounded up if it is a bound."""
    if up:
        unit = 10.0 ** (math.floor(math.log10(value)) - 1)
        value = math.ceil(value / unit) * unit
    return f"{value:.1e}".replace("e-0", "e-")


def calls(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


@pytest.fixture(scope="module")
def measured() -> Measured:
    return Measured()


def bullets(of: str) -> str:
    """The bullets of a section of docs/theory.md."""
    section = (DOCS / "theory.md").read_text().split(f"## {of}\n")[1].split("\n## ")[0]
    return "\n".join(line for line in section.splitlines() if line.startswith("- "))


def quoted(plane: Any, of: Measured) -> list[str]:
    """What the bullets below the plane must say, made from the data."""
    words = []
    etas = (0.003, 0.001, 0.0003)
    one, two = ([gap(of.at("own", name, eta, 32, 1)) for eta in etas] for name in ("SZOHT", "VR-SZHT"))
    words.append(
        f"With q = 1 and k = 32, SZOHT leaves {one[0]}, {one[1]} and {one[2]} with eta = 0.003, 0.001 and 0.0003, "
        f"and VR-SZHT {two[0]}, {two[1]} and {two[2]}."
    )
    stable = of.least(plane, "own", "SZOHT", 32)
    places = [of.plane["own"]["eta"].index(eta) for eta in (0.03, 0.1, 0.3)]
    small, middle, large = (stable[place] for place in places)
    words.append(f"at k = 32 it is {small}, {middle} and {large} for eta = 0.03, 0.1 and 0.3")
    ratios = of.ratios("VR-SZHT", "SZOHT")
    words.append(
        f"Over all k >= 8 and eta <= 0.01, VR-SZHT leaves {min(ratios[:-1]):.2f} to {max(ratios[:-1]):.2f} times as "
        f"much as SZOHT for q up to 64, and {ratios[-1]:.2f} times as much for q = 256"
    )
    ratios = of.ratios("SAGA-SZHT", "SZOHT")
    words.append(
        f"k >= 8 and eta <= 0.01, it leaves {min(ratios[:-1]):.1f} to {max(ratios[:-1]):.1f} times as much as SZOHT for q up to 64, and "
        f"{ratios[-1]:.2f} times as much for q = 256."
    )
    many = of.plane["floors"]["by_q"][of.plane["floors"]["q"].index(1024)]
    words.append(f"with q = 1,024, VR-SZHT leaves {gap(many['VR-SZHT'])}, and SZOHT {gap(many['SZOHT'])}")
    words.append(f"costs n/m + 2 = {plane.N // plane.M + 2} times")

    names = ("SZOHT", "FGZOHT", "VR-SZHT", "SARAH-SZHT")
    a, b, c, d = (calls(min(of.calls("own", name, "0.01"))) for name in names)
    words.append(f"{a} for SZOHT, {b} for FGZOHT, {c} for VR-SZHT and {d} for SARAH-SZHT")
    a, b, c, d = (calls(min(of.calls("own", name, "0.0001"))) for name in names)
    words.append(f"to 1/10,000 they are {a}, {b}, {c} and {d}.")
    a, b, c = (calls(min(of.calls("common", name, "0.01"))) for name in names[:3])
    words.append(f"{a} for SZOHT, {b} for FGZOHT and {c} for VR-SZHT")
    a, b, c = (calls(min(of.calls("common", name, "0.0001"))) for name in names[:3])
    words.append(f"To 1/10,000 they are {a}, {b} and {c}:")
    row = of.calls("common", "VR-SZHT", "0.0001")
    fewest = of.plane["common"]["q"][int(np.argmin(row))]
    words.append(
        f"by a factor of {max(row) / min(row):.1f}, from {calls(min(row))} to {calls(max(row))}, with the fewest at "
        f"q = {fewest}."
    )

    vr, sarah, full, plain = (of.one_direction("common", name) for name in ("VR-SZHT", "SARAH-SZHT", "FGZOHT", "SZOHT"))
    words.append(
        f"VR-SZHT leaves at most {gap(max(vr[k] for k in vr if k >= 2), up=True)} for every k from 2 to {max(vr)}, "
        f"SARAH-SZHT at most {gap(max(sarah[k] for k in sarah if k >= 4), up=True)} from 4 to {max(sarah)}, and FGZOHT "
        f"at most {gap(max(full.values()), up=True)}, where SZOHT leaves {gap(plain[8])} (k = 8) and {gap(plain[32])} "
        f"(k = 32)"
    )
    more = [
        vr_q / q
        for eta, vr_q, q in zip(
            of.plane["common"]["eta"],
            of.least(plane, "common", "VR-SZHT", 32),
            of.least(plane, "common", "SZOHT", 32),
            strict=True,
        )
        if eta >= 0.01
    ]
    words.append(f"At k = 32 and eta >= 0.01, VR-SZHT needs {min(more):.0f} to {max(more):.0f} times as many")
    own = [of.one_direction("own", name)[1] for name in ("VR-SZHT", "SARAH-SZHT")]
    words.append(
        f"at k = 1 they leave {vr[1]:.1g} and {sarah[1]:.1g} of the gap, where the paper's estimator leaves "
        f"{gap(own[0])} and {gap(own[1])}."
    )
    stays = [
        max(k for k, share in of.one_direction("common", name, etas=0.001).items() if share > 0.9)
        for name in ("VR-SZHT", "SARAH-SZHT")
    ]
    words.append(
        f"with eta >= 0.001 only, VR-SZHT stays at the start for k up to {stays[0]} and SARAH-SZHT for k up to "
        f"{stays[1]}."
    )
    words.append(f"a smaller eta than {min(of.plane['common']['eta']):g}.")
    size = {"d": plane.D, "s2": plane.D, "k_star": plane.K_STAR, "kappa": 1.0}
    (only,) = zt.theory.szoht_k(q=of.plane["szoht_q"], **size)
    assert of.plane["szoht_q"] == zt.theory.szoht_q(**size)
    words.append(f"starts at q = {of.plane['szoht_q']}, with k = {only} only")
    words.append(f"VR-SZHT starts at k = {zt.theory.vr_least_k(k_star=1, kappa=1.0):,}.")
    return words


def test_the_bullets_below_the_plane_quote_the_data(plane, measured):
    text = bullets("Where methods converge")
    for words in quoted(plane, measured):
        assert words in text
        text = text.replace(words, "")
    # what is left are goals, settings and formulas, and two statements that have tests of their own
    for words in ("within a factor of 2.", "sigma^2", "/ 4.", "1/(qn)", "1/q", "1/d", "(n/m + 2) m/n = 1 + 2m/n"):
        assert words in text
        text = text.replace(words, "")
    text = re.sub(r"1/10,000|1/100|\b(q|k|m) = \d+", "", text)
    assert not re.search(r"\d", text), re.findall(r".{20}\d.{20}", text)


def test_the_bold_statements_below_the_plane_are_true(plane, measured):
    four = ("SZOHT", "FGZOHT", "VR-SZHT", "SARAH-SZHT")
    assert all(max(measured.one_direction("own", name).values()) < 1e-2 for name in four)
    for k in (8, 32, 128):  # not to diverge, variance reduction needs as many directions as SZOHT
        rows = [measured.least(plane, "own", name, k) for name in ("SZOHT", "VR-SZHT", "SARAH-SZHT")]
        assert rows[0] == rows[1] == rows[2]
    for name in four:  # floors fall to the end of the grid, with q = 1 at every k
        cube = measured.left("own", name)
        assert (cube[-1, :, 0] < cube[-2, :, 0]).all()
    for name, floor in (("SZOHT", True), ("FGZOHT", False), ("VR-SZHT", False), ("SARAH-SZHT", False)):
        assert (measured.one_direction("common", name)[32] > 1e-3) == floor
    needs = plane.boundary(
        plane.best(measured.left("common", "SZOHT")), measured.plane["common"]["k"], measured.plane["common"]["q"], 1e-4
    )
    assert all(needs[k] is not None and k / 2 <= needs[k] <= k for k in needs)
    for goal in ("0.01", "0.0001"):
        fewest = {name: min(measured.calls("own", name, goal)) for name in four}
        assert all(fewest[name] > 2 * fewest["SZOHT"] for name in ("VR-SZHT", "SARAH-SZHT"))


def test_the_floors_are_as_predicted(plane, measured):
    floors, ratios = measured.plane["floors"], []
    for name in ("SZOHT", "FGZOHT", "VR-SZHT", "SARAH-SZHT"):
        for q, found in zip(floors["q"], floors["by_q"], strict=True):
            ratios.append(found[name] / plane.predicted_floor(name, floors["eta"], q, floors["k"]))
        for m, found in zip(floors["m"], floors["by_m"], strict=True):
            eta, q = floors["small_eta"], floors["small_q"]
            ratios.append(found[name] / plane.predicted_floor(name, eta, q, floors["k"], m))
    assert 1 / 2 < min(ratios) <= max(ratios) < 2


def test_the_page_quotes_the_theory_and_the_complexities(measured):
    page, (row,) = (
        (DOCS / "theory.md").read_text(),
        [one for one in measured.store["complexity"] if (one["method"], one["name"]) == ("VR-SZHT", "q")],
    )
    a, b, c, d = (f"{x:,.0f}" for x in row["calls"])
    assert row["at"] == [3, 10, 30, 100]
    assert f"{a}, {b}, {c} and {d} for q = 3, 10, 30 and 100" in bullets("Measured complexity")
    a, b, c, d = (f"{x:.0f}" for x in row["thresholdings"])
    assert f"({a}, {b} and {c}). From q = 30 to q = 100 they fall only to {d}" in bullets("Measured complexity")
    large = {"d": 10**9, "s2": 10**9, "k_star": 1, "kappa": 1.0}
    szoht, vr = zt.theory.szoht_q(**large), zt.theory.vr_q(**large)
    least = min(zt.theory.szoht_q(d=d, s2=d, k_star=1, kappa=1.0) for d in range(400, 3000, 100))
    assert least == zt.theory.szoht_q(d=700, s2=700, k_star=1, kappa=1.0)
    assert f"For SZOHT, that q is {szoht} in the best case and for a large d" in page
    assert f"it is lowest, {least}, around d = 700" in page
    assert f"q >= {least}, or {szoht} for a large d |" in page
    times = zt.theory.vr_least_k(k_star=1, kappa=1.0) // 72
    assert (
        f"a k that is {times:,} times larger, and for a large d a q that is {round(vr / szoht):,} times larger" in page
    )
