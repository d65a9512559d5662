"""A seeded run of every method, as a table of digests: a change of the code must not change the bits.

``python tests/bits.py`` prints the cases whose outcome differs from the table in ``tests/data/bits.json``;
``python tests/bits.py --write --only "auto / "`` makes the cases whose name holds this text again, for a change of the
bits that is wanted; without ``--only`` it makes the whole table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from zoo import OF_VALUES, Absolute, instance

import zerothresh as zt

TABLE = Path(__file__).parent / "data" / "bits.json"
K = 3

ESTIMATORS = {
    "default": zt.Estimator(q=4, mu=1e-4),
    "sphere, independent": zt.Estimator(q=3, mu=1e-4, directions="sphere", shared=False, common=False),
    "central, supports": zt.Estimator(q=3, mu=1e-3, directions="sphere", s2=2, difference="central"),
    "gaussian": zt.Estimator(q=5, mu=1e-4, directions="gaussian"),
}


def problems() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Small problems by name, each with further arguments of `zt.minimize`."""
    ridge = zt.problems.ridge(seed=0)
    quadratic = zt.problems.quadratic(d=8, k_true=2, n=6, condition=4, spread=0.3, seed=1)
    wide = zt.problems.quadratic(d=40, k_true=3, n=1, condition=10, seed=4)
    return {
        "ridge": (ridge, {}),
        "ridge, sphere, independent": (ridge, {"estimator": ESTIMATORS["sphere, independent"]}),
        "quadratic, central, supports": (quadratic, {"estimator": ESTIMATORS["central, supports"]}),
        "quadratic, bounds": (quadratic, {"bounds": (-0.6, 1.5), "exclude": [0]}),
        "quadratic, groups": (quadratic, {"groups": [0, 0, 1, 1, 2, 2, 3, 3]}),
        "quadratic, monitor": (quadratic, {"monitor": quadratic.F, "estimator": ESTIMATORS["gaussian"]}),
        "wide": (wide, {"budget": 1500}),
        "non-smooth, start": (Absolute(), {"x0": [0.5, 0.0, 0.0, -1.0, 0.0, 0.0]}),
    }


class Far:
    """Three quadratics in many dimensions, for the paths that long points take."""

    d, n = 20_000, 3

    def values(self, points: Any, components: Any) -> Any:
        return ((points[:, :50] - 1.0 - 0.1 * components[:, None]) ** 2).sum(axis=1)


def larger() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Larger problems, for the methods that are named before the stroke."""
    logistic = zt.problems.logistic(n=60, d=30, seed=6)
    sparse = zt.problems.ridge(n=40, d=25, seed=8)
    huge = Far()
    settings = {
        "default": zt.Estimator(q=8, mu=1e-4),
        "rademacher": zt.Estimator(q=15, mu=1e-4, directions="rademacher"),
    }
    coordinate = zt.Estimator(q=8, mu=1e-4, directions="coordinate")
    return {
        **{
            f"{name} / logistic": (logistic, {"budget": 4000})
            for name in ("auto", "htp", "index", "guided-saga", "niht")
        },
        **{f"{name} / ridge, many": (sparse, {"budget": 4000}) for name in ("auto", "htp", "index", "guided-saga")},
        **{f"{name} / huge": (huge, {"estimator": settings["default"], "budget": 200}) for name in PAPER},
        **{f"{name} / huge, signs": (huge, {"estimator": settings["rademacher"], "budget": 200}) for name in PAPER},
        **{f"{name} / coordinate": (sparse, {"estimator": coordinate}) for name in PAPER},
    }


PAPER = ("fgzoht", "szoht", "pm-szht", "p-saga-szht", "saga-szht", "lsvrg-szht", "vr-szht", "sarah-szht")


def attacks(wanted: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Attacks on a small linear classifier."""
    rng = np.random.default_rng(3)
    images = rng.uniform(size=(12, 6, 6, 3))
    weights = rng.standard_normal((108, 4))

    def model(batch: Any) -> Any:
        return (batch.reshape(len(batch), -1) - 0.5) @ weights

    labels = model(images).argmax(axis=1)
    labels[0] = (labels[0] + 1) % 4  # one image that the classifier gets wrong
    shared: dict[str, Any] = {"bounds": (0.0, 1.0), "seed": 2, "budget": 600}
    for label, more in {
        "pixels": {"k": 3},
        "channels": {"k": 6, "granularity": "channel"},
        "targeted": {"k": 4, "targeted": 1},
        "of the paper": {"k": 4, "attack": instance("szoht"), "estimator": ESTIMATORS["default"]},
        "with retries": {"k": 2, "retries": 1},
    }.items():
        if wanted not in f"attack / {label}":
            continue
        found = zt.attack.universal(model, images, labels, **{**shared, **more})
        held = hashlib.blake2b(np.ascontiguousarray(found.theta).tobytes(), digest_size=12)
        held.update(found.after.tobytes())
        x = [float(f"{value:.12g}") for value in found.theta]
        yield f"attack / {label}", {"digest": held.hexdigest(), "x": x, "fun": 0.0, "counts": [found.queries]}


def noisy(x: Any) -> float:
    """A quadratic whose noise is a function of the point, so that it comes again in a second run."""
    word = int.from_bytes(hashlib.blake2b(np.ascontiguousarray(x).tobytes(), digest_size=4).digest(), "little")
    return float(((x - np.array([2.0, 0, 0, -1.0, 0, 0, 0, 0.5])) ** 2).sum()) + 0.01 * (word / 2**32 - 0.5)


def outcome(result: zt.Result) -> dict[str, Any]:
    """What a run came to: a digest of all of its numbers, and the main ones to compare with a tolerance."""
    trace = result.trace
    parts = [result.x, result.x_last, np.array([result.fun]), trace.nfev, trace.nht, trace.fun]
    parts += [np.array([result.nfev, result.nht, result.nit, int(result.status)]), *trace.support]
    held = hashlib.blake2b(digest_size=12)
    for part in parts:
        array = np.ascontiguousarray(part)
        held.update(str(array.dtype).encode() + array.tobytes())
    return {
        "digest": held.hexdigest(),
        "x": [float(f"{value:.12g}") for value in (result.x if result.x.size < 100 else result.x[result.support])],
        "fun": float(f"{result.fun:.12g}"),
        "counts": [int(result.nfev), int(result.nht), int(result.nit), int(result.status)],
    }


def names() -> list[str]:
    """The methods of the library."""
    known = zt.methods.available()
    return [name for name in OF_VALUES if known[name].__module__.startswith("zerothresh.")]


def cases(wanted: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each case and its outcome."""
    for name in names():
        for problem, (objective, more) in problems().items():
            label = f"{name} / {problem}"
            if wanted in label:
                arguments = {"budget": 700, "seed": 7, "estimator": ESTIMATORS["default"], "x0": None, **more}
                yield label, run(objective, name, arguments)
        if wanted in (label := f"{name} / noisy"):
            yield label, run(noisy, name, {"budget": 600, "seed": 3, "x0": 8})
        if wanted in (label := f"{name} / sometimes NaN"):
            arguments = {"budget": 500, "seed": 5, "x0": 8, "on_nan": "worst"}
            yield label, run(lambda x: float("nan") if x[2] > 0.3 else noisy(x), name, arguments)

    for label, (objective, more) in larger().items():
        if wanted in label:
            arguments = {"seed": 7, "x0": None, "budget": 700, **more}
            yield label, run(objective, label.split(" / ")[0], arguments)
    yield from attacks(wanted)


def run(objective: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One run of a method with small settings."""
    arguments = dict(arguments)
    x0 = arguments.pop("x0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return outcome(zt.minimize(objective, x0, K, method=instance(name), **arguments))
        except ValueError as error:
            return {"refused": type(error).__name__}


def same(held: dict[str, Any], found: dict[str, Any]) -> bool:
    """Whether an outcome is that of the table up to rounding, as on another machine."""
    if "refused" in held or "refused" in found:
        return held == found
    close = np.allclose(held["x"], found["x"], rtol=1e-5, atol=1e-7)
    return bool(close and np.isclose(held["fun"], found["fun"], rtol=1e-6, atol=1e-9, equal_nan=True))


def main() -> int:
    """Compare with the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    arguments = parser.parse_args()
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if arguments.write:
        TABLE.parent.mkdir(exist_ok=True)
        made = dict(cases(arguments.only))
        table = {**table, **made} if arguments.only else made
        lines = (f"{json.dumps(label)}: {json.dumps(found)}" for label, found in table.items())
        TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    different, count = 0, 0
    for label, found in cases(arguments.only):
        count += 1
        if table.get(label) != found:
            different += 1
            print(f"{label}\n  was {table.get(label)}\n  is  {found}")
    print(f"{count} cases, {different} differ")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
