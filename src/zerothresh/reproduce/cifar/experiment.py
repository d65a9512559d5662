"""The paper's attacks on CIFAR-10 (Section 5 and the appendix) with its settings, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack import Classifier, FewPixel, Universal, wrap
from zerothresh.attack.images import ImageStack, stack_images
from zerothresh.attack.scores import loss
from zerothresh.basics import check
from zerothresh.comparison.cell import FORMAT, Cell, Outcome, Subject
from zerothresh.comparison.work import Done, run_cells
from zerothresh.datasets.cifar10 import CLASSES, PAPER_IDS, load_cifar10, load_cifar10_paper
from zerothresh.datasets.tabular import Table
from zerothresh.methods.registry import make
from zerothresh.reproduce.ridge.experiments import BESIDE, FIGURE
from zerothresh.rounds.estimator import Estimator

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

K, M, BUDGET = 60, 10, 600
CROWD = 1000  # training images on which a perturbation for all test images of a class is tried
ETAS = (0.001, 0.005, 0.01, 0.05)
# Eq. (3) to the letter, with s2 = d: each component has random directions of its own.
PAPER = Estimator.paper(q=10, mu=1e-3)
BEST = "best"

# The labels that the paper prints under its pictures. Its bold "plane" (SARAH-SZHT) and "bird" (FGZOHT) are correct
# labels, not errors of the net.
PRINTED = {
    "airplane": {
        "FGZOHT": "plane plane plane ship deer plane plane plane ship truck",
        "SZOHT": "plane plane plane plane deer plane bird bird ship truck",
        "VR-SZHT": "plane plane auto plane ship plane plane plane ship truck",
        "SAGA-SZHT": "plane frog plane plane deer plane plane plane ship ship",
        "SARAH-SZHT": "plane plane auto ship ship plane bird plane frog truck",
    },
    "ship": {
        "FGZOHT": "ship frog ship ship ship ship ship ship ship ship",
        "SZOHT": "ship frog ship deer ship deer ship ship ship plane",
        "VR-SZHT": "ship frog truck plane ship ship ship ship ship auto",
        "SAGA-SZHT": "ship frog truck ship plane deer ship ship ship ship",
        "SARAH-SZHT": "ship frog auto auto ship ship ship ship ship ship",
    },
    "bird": {
        "FGZOHT": "frog bird deer dog deer bird bird deer frog bird",
        "SZOHT": "frog bird bird bird bird bird bird ship bird bird",
        "VR-SZHT": "frog bird bird bird bird frog bird ship bird bird",
        "SAGA-SZHT": "frog bird deer dog bird bird cat deer frog bird",
        "SARAH-SZHT": "frog bird frog bird bird frog bird bird frog bird",
    },
    "dog": {
        "FGZOHT": "bird dog deer dog dog cat cat cat dog dog",
        "SZOHT": "frog dog bird dog dog cat dog cat dog dog",
        "VR-SZHT": "dog dog bird dog dog horse dog dog dog dog",
        "SAGA-SZHT": "dog dog dog dog dog horse dog cat dog dog",
        "SARAH-SZHT": "deer dog dog frog dog cat frog dog dog dog",
    },
}
# The learning rates that the paper prints; it prints none for the classes of the appendix.
PRINTED_ETAS = {
    "airplane": {"FGZOHT": 0.05, "SZOHT": 0.005, "VR-SZHT": 0.01, "SAGA-SZHT": 0.05, "SARAH-SZHT": 0.05},
}
LABELS = (*FIGURE, *BESIDE, "auto", BEST)
VANILLA = ("FGZOHT", "SZOHT")
REDUCED = ("VR-SZHT", "SAGA-SZHT", "SARAH-SZHT")

# The number of fresh runs by budget. The paper's claims are about its own budget. Runs of one method differ a lot: a
# hundred pairs of runs bring the 95 % interval of a mean difference down to a fifth of its standard deviation on
# either side. Larger budgets only show how the search goes on, and each costs ten times as much as the one before.
JUDGING = {BUDGET: 100, 10 * BUDGET: 10, 100 * BUDGET: 3}
QUICK_JUDGING = {BUDGET: 5}
CROWDED = {100 * BUDGET: 3}  # the same for all test images of a class, which a smaller budget hardly shows once
# The number of runs that choose a learning rate, and a candidate among the variance-reduced methods.
CHOOSING, QUICK_CHOOSING = 10, 1


def method_of(label: str, eta: float, images: ImageStack) -> Any:
    """Return a method by its label; `auto` and `best` ignore the learning rate."""
    if label == BEST:
        return FewPixel(images.grid, mixed=False)  # single numbers alone, as the published figures have it
    if label == "auto":
        return make("auto")
    return {**FIGURE, **BESIDE}[label](eta, M)


def etas_of(label: str) -> tuple[float, ...]:
    """Return the learning rates that are tried for a method; 0 stands for none."""
    return (0.0,) if label in ("auto", BEST) else ETAS


def small_net() -> Classifier:
    """Return the net that comes with the package."""
    with as_file(files("zerothresh") / "attack" / "nets" / "cifar10_small.onnx") as path:
        return wrap(path)


class Watched(Universal):
    """An attack problem with an exact F for the curves, whose queries are not counted in the budget."""

    def F(self, theta: Array) -> float:
        """Return the mean loss over the images."""
        return float(self.values(np.broadcast_to(theta, (self.n, self.d)), np.arange(self.n)).mean())


@dataclass(frozen=True)
class Victims:
    """The ten images of a class that are attacked, and the net.

    Attributes
    ----------
    name: the class.
    stack: the images.
    labels: their labels.
    ids: their numbers in the test set.
    before: the labels that the net gives them before the attack.
    classifier: the net.
    others: further test images of the class that the net classifies correctly; None if CIFAR-10 is not available.
    """

    name: str
    stack: ImageStack
    labels: Labels
    ids: Labels
    before: Labels
    classifier: Classifier
    others: ImageStack | None = None

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which images the net classifies correctly before the attack."""
        return np.asarray(self.before == self.labels)

    def problem(self, *, watched: bool = False) -> Universal:
        """Return the problem with all ten images, as in the paper; those already misclassified have the loss 0."""
        kind = Watched if watched else Universal
        return kind(self.classifier, self.stack, self.labels)


def victims(name: str, cifar10: Path | None = None, classifier: Classifier | None = None) -> Victims:
    """Return the images of a class.

    Arguments
    ---------
    name: the class, one of the paper's four.
    cifar10: where CIFAR-10 is; without it there are no other images to try a perturbation on.
    classifier: the net that is attacked; default: the net that comes with the package.
    """
    check.one_of("the class", name, PAPER_IDS)
    net = small_net() if classifier is None else classifier
    table = load_cifar10_paper(name)
    images, labels, ids = (np.asarray(table[part]) for part in ("data", "target", "ids"))
    ten = _stack(images, net)
    before = Universal(net, ten, labels).predictions(np.zeros(ten.d))
    others = None
    if cifar10 is not None:
        more, numbers = _rights(load_cifar10(cifar10), Victims(name, ten, labels, ids, before, net))
        others = replace(more, flat=more.flat[~np.isin(numbers, ids)])
    return Victims(name, ten, labels, ids, before, net, others)


def _stack(pixels: NDArray[Any], net: Classifier) -> ImageStack:
    """Return images with values in [-0.5, 0.5], as the paper scales them."""
    return stack_images(pixels.astype(np.float32) / 255 - 0.5, net, layout="NHWC", bounds=(-0.5, 0.5))


def crowd(of: Victims, cifar10: Path) -> Victims:
    """Return all correctly classified test images of the class, and as others up to 1,000 training images of it."""
    test, train = (_rights(load_cifar10(cifar10, split=split), of) for split in ("test", "train"))
    (shown, ids), (more, _) = test, train
    labels = np.full(len(ids), CLASSES.index(of.name))
    return replace(of, stack=shown, labels=labels, ids=ids, before=labels, others=replace(more, flat=more.flat[:CROWD]))


def _rights(table: Table, of: Victims) -> tuple[ImageStack, Labels]:
    """Return the images of the class that the net classifies correctly, and their numbers."""
    label = CLASSES.index(of.name)
    chosen = np.flatnonzero(np.asarray(table["target"]) == label)
    images = _stack(np.asarray(table["data"])[chosen], of.classifier)
    right = Universal(of.classifier, images, np.full(images.n, label)).predictions(np.zeros(images.d)) == label
    return replace(images, flat=images.flat[right]), np.asarray(table["ids"])[chosen][right]


@dataclass(frozen=True)
class Score:
    """What a perturbation does to the images that it was computed for, and to others of the class.

    Attributes
    ----------
    theta: the perturbation.
    after: the labels that the net gives the attacked images.
    fooled: which images were classified correctly before the attack and are not any more.
    rate: the share of fooled images among those that were classified correctly before.
    loss: the mean loss over the latter.
    transfer: the share of the other images that are fooled too; NaN if there are none.
    queries: how many queries the search made.
    """

    theta: Array
    after: Labels
    fooled: NDArray[np.bool_]
    rate: float
    loss: float
    transfer: float
    queries: int

    @property
    def channels(self) -> int:
        """The number of coordinates that are not 0."""
        return int(np.count_nonzero(self.theta))

    @property
    def l2(self) -> float:
        """The Euclidean norm of the perturbation, before clipping."""
        return float(np.linalg.norm(self.theta))


def score(of: Victims, outcome: Outcome, budget: int) -> Score:
    """Evaluate the last iterate of a run, and check it against what is promised: k, the value range, the budget."""
    if np.count_nonzero(outcome.x) > K or outcome.nfev > budget:
        raise RuntimeError(
            f"a run has {np.count_nonzero(outcome.x)} non-zeros and {outcome.nfev} queries, but at most {K} and "
            f"{budget} are allowed"
        )
    problem = of.problem()
    images = problem.attacked(outcome.x[None], np.arange(problem.n))
    low, high = of.stack.bounds
    if images.min() < low or images.max() > high:
        raise RuntimeError(f"an attacked image leaves the value range [{low}, {high}]")
    scores = of.classifier(images)
    after = np.asarray(scores.argmax(axis=1))
    fooled = of.right & (after != of.labels)
    rate = float(fooled.sum() / max(1, of.right.sum()))
    transfer = float("nan")
    if of.others is not None and of.others.n:
        label = np.full(of.others.n, CLASSES.index(of.name))
        transfer = float((Universal(of.classifier, of.others, label).predictions(outcome.x) != label).mean())
    mean = float(loss(scores, of.labels)[of.right].mean())
    return Score(outcome.x, after, fooled, rate, mean, transfer, outcome.nfev)


@dataclass
class AttackEntry:
    """The results of a method on a class.

    Attributes
    ----------
    label: the method.
    eta: the learning rate of the single run.
    outcome, score: the single run, as in the paper.
    fresh_eta: the learning rate of the fresh runs.
    choosing: the scores of the runs that chose it, with this learning rate.
    more: the scores of fresh runs by budget.
    crowd: the scores of fresh runs by budget, for all test images of the class at once.
    """

    label: str
    eta: float
    outcome: Outcome
    score: Score
    fresh_eta: float = 0.0
    choosing: list[Score] = field(default_factory=list)
    more: dict[int, list[Score]] = field(default_factory=dict)
    crowd: dict[int, list[Score]] = field(default_factory=dict)


@dataclass(frozen=True)
class AttackPlan:
    """How many runs choose a learning rate and judge it.

    Attributes
    ----------
    names: the classes that are attacked.
    seed: where all runs come from.
    choosing: the number of runs that choose eta for the fresh runs.
    judging: the number of fresh runs, by budget.
    crowded: the number of runs on all test images of the class, by budget.
    cifar10: where CIFAR-10 is, or None.
    quick: whether it is a shortened version of the paper's experiment.
    """

    names: tuple[str, ...]
    seed: int
    choosing: int
    judging: dict[int, int]
    crowded: dict[int, int]
    cifar10: Path | None = None
    quick: bool = False

    @property
    def runs(self) -> int:
        """The number of runs of the whole experiment."""
        return len(self.names) * sum(count for _, count in self._parts())

    @property
    def queries(self) -> int:
        """The largest number of queries of the whole experiment."""
        return len(self.names) * sum(budget * count for budget, count in self._parts())

    def _parts(self) -> list[tuple[int, int]]:
        """Return pairs of a budget and the number of runs with it, for one class."""
        grid = sum(len(etas_of(label)) for label in LABELS) * (1 + self.choosing)
        fresh = [*self.judging.items(), *self.crowded.items()]
        return [(BUDGET, grid), *((budget, len(LABELS) * count) for budget, count in fresh)]


def plan_of(
    names: Sequence[str], *, quick: bool, seed: int, cifar10: Path | None, most: int | None = None
) -> AttackPlan:
    """Return the plan of the whole experiment, or of a shortened version.

    Arguments
    ---------
    names: the classes.
    quick: whether to shorten it.
    seed: where all runs come from.
    cifar10: where CIFAR-10 is, or None.
    most: the largest budget; larger ones are left out. None for all.
    """
    if most is not None:
        check.count("--budget", most, low=min(JUDGING), what=" queries")
    judging, crowded = QUICK_JUDGING if quick else JUDGING, {} if quick or cifar10 is None else CROWDED
    judging, crowded = (
        {budget: count for budget, count in counts.items() if most is None or budget <= most}
        for counts in (judging, crowded)
    )
    choosing = QUICK_CHOOSING if quick else CHOOSING
    return AttackPlan(tuple(names), check.count("seed", seed, low=0), choosing, judging, crowded, cifar10, quick)


@dataclass(frozen=True)
class Attacks:
    """The results of all methods on one class."""

    victims: Victims
    entries: tuple[AttackEntry, ...]
    crowd: Victims | None = None

    def entry(self, label: str) -> AttackEntry:
        """Return the results of a method."""
        return next(entry for entry in self.entries if entry.label == label)

    @cached_property
    def queries(self) -> int:
        """The number of images that the net has classified in all: for searches, curves and scores."""
        return self.victims.classifier.queries


def run(plan: AttackPlan, name: str, *, jobs: int, folder: Path | None, done: Done | None = None) -> Attacks:
    """Attack one class with all methods.

    First come the runs of the grid, of which the first seed is the paper's single run and the others choose the
    learning rates of the fresh runs; then the fresh runs.

    Arguments
    ---------
    plan: how many runs to make.
    name: the class.
    jobs, folder, done: as for `run_cells`.
    """
    of = victims(name, plan.cifar10)
    plain, watched = Subject.of(of.problem()), Subject.of(of.problem(watched=True))
    box = (-of.stack.width, of.stack.width)
    subjects = {"watched": watched, "plain": plain}
    everybody = crowd(of, plan.cifar10) if plan.crowded and plan.cifar10 is not None else None
    if everybody is not None:
        subjects["crowd"] = Subject.of(everybody.problem())
    subjects |= {f"{kind} box": replace(subject, bounds=box) for kind, subject in subjects.items()}

    def cell(label: str, eta: float, budget: int, seed: int, kind: str) -> Cell:
        subject = f"{kind} box" if label == BEST else kind
        return Cell(f"{name} {label}", method_of(label, eta, of.stack), PAPER, K, budget, subject, seed)

    def outcomes(cells: list[Cell]) -> list[Outcome]:
        return run_cells(subjects, cells, jobs=jobs, folder=folder, done=done)

    seeds = [plan.seed + place for place in range(1 + plan.choosing)]  # the first is the paper's single run
    tried = [(label, eta, seed) for label in LABELS for eta in etas_of(label) for seed in seeds]
    grid = dict(
        zip(tried, outcomes([cell(label, eta, BUDGET, seed, "watched") for label, eta, seed in tried]), strict=True)
    )

    def lowest(label: str, eta: float, some: Sequence[int]) -> float:
        return float(np.mean([grid[label, eta, seed].lowest for seed in some]))

    entries, careful = [], {}
    for label in LABELS:
        eta = min(etas_of(label), key=lambda eta, label=label: lowest(label, eta, seeds[:1]))  # type: ignore[misc]
        careful[label] = min(etas_of(label), key=lambda eta, label=label: lowest(label, eta, seeds[1:]))  # type: ignore[misc]
        outcome = grid[label, eta, seeds[0]]
        others = [score(of, grid[label, careful[label], seed], BUDGET) for seed in seeds[1:]]
        entries.append(AttackEntry(label, eta, outcome, score(of, outcome, BUDGET), careful[label], others))

    def fresh(kind: str, whom: Victims, counts: dict[int, int]) -> Iterator[tuple[str, int, Score]]:
        wanted = [
            (label, budget, 1000 * (plan.seed + 1) + place)
            for budget, count in counts.items()
            for label in LABELS
            for place in range(count)
        ]
        judged = outcomes([cell(label, careful[label], budget, seed, kind) for label, budget, seed in wanted])
        for (label, budget, _), outcome in zip(wanted, judged, strict=True):
            yield label, budget, score(whom, outcome, budget)

    by_label = {entry.label: entry for entry in entries}
    for label, budget, found in fresh("plain", of, plan.judging):
        by_label[label].more.setdefault(budget, []).append(found)
    if everybody is not None:
        for label, budget, found in fresh("crowd", everybody, plan.crowded):
            by_label[label].crowd.setdefault(budget, []).append(found)
    return Attacks(of, tuple(entries), everybody)


def identity(plan: AttackPlan) -> dict[str, Any]:
    """Return what must be the same for earlier work in a folder to be continued."""
    from zerothresh.version import __version__

    return {
        "experiments": [f"attack {name}" for name in plan.names],
        "quick": plan.quick,
        "seed": plan.seed,
        "choosing": plan.choosing,
        "judging": {str(budget): count for budget, count in plan.judging.items()},
        "others": plan.cifar10 is not None,
        "version": __version__,
        "format": FORMAT,
    }
