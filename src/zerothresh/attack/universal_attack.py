"""`zt.attack.universal`: one sparse perturbation for many images, for one k or for several in one search."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.arguments import costs_of
from zerothresh.api.minimizer import minimize
from zerothresh.api.optimizer import Optimizer
from zerothresh.api.result import Result
from zerothresh.api.several_k import values_of_k
from zerothresh.attack.attack_path import AttackPath
from zerothresh.attack.attacked import Attacked
from zerothresh.attack.classifier import wrap
from zerothresh.attack.evaluations import Evaluations
from zerothresh.attack.few_pixel import FewPixel
from zerothresh.attack.few_pixel_path import FewPixelPath
from zerothresh.attack.images import check_labels, stack_images
from zerothresh.attack.predictions import NO_PREDICTION, AttackStopped
from zerothresh.attack.universal_problem import Universal
from zerothresh.basics import check
from zerothresh.evaluate import evaluator_for
from zerothresh.objective.forms import wrap as as_objective
from zerothresh.session.faults import Faults
from zerothresh.session.status import Status

Array = NDArray[np.float64]

_AMPLE = 10**12  # a budget for the check of the other arguments
# Arguments of `minimize` that an attack passes on to its search: those of the optimiser itself, and the others.
_OF_THE_OPTIMIZER = ("options", "estimator", "include", "exclude", "monitor", "on_nan", "on_error", "fsync", "parallel")
_OF_THE_CALLS = (
    *("workers", "chunk", "retries", "backoff", "jitter", "timeout", "per_second", "max_time", "cost", "max_cost"),
    *("callback", "progress", "run"),
)


@overload
def universal(
    classifier: Any, images: Any, labels: Any, *, k: int, ks: None = None, budget: int, **others: Any
) -> Attacked: ...
@overload
def universal(
    classifier: Any, images: Any, labels: Any, *, ks: Iterable[int], budget: int, **others: Any
) -> AttackPath: ...
def universal(
    classifier: Any,
    images: Any,
    labels: Any,
    *,
    k: int | None = None,
    ks: Any = None,
    budget: int,
    granularity: str = "pixel",
    targeted: Any = None,
    bounds: tuple[float, float] | None = None,
    layout: str | None = None,
    scores: str | None = None,
    attack: Any = "best",
    seed: int | None = None,
    **search: Any,
) -> Attacked | AttackPath:
    r"""Find one perturbation of at most k pixels that fools a classifier on many images, from its scores alone.

    Arguments
    ---------
    classifier: a callable from a batch of images to scores, the path of an ONNX file, a torch module, a
        scikit-learn estimator, an ART classifier, a foolbox model, or a `zt.attack.Classifier`.
    images: an array of shape (n, ...) in the value range of the classifier; NHWC and NCHW are recognised.
    labels: the true class of each image, of shape (n,).
    k: the most pixels (or channels of pixels) that are changed.
    ks: instead of k, several of them, such as [1, 2, 5, 10, 20]: one search for all, in which each k goes on from what
        smaller ones have found. It goes with ``attack="best"``.
    budget: the most queries; a query is one image shown to the classifier. It includes the evaluation of all n images
        before the search, which tells which of them the classifier gets right, and the one after the search, which
        tells what the attack did. Each takes n queries; with ``retries``, 2n are set aside for each. With ``ks``, there
        is one evaluation after the search for each k, unless it ends with the same perturbation as a smaller one.
    granularity: "pixel" (all channels of k pixels) or "channel" (k single numbers, as the paper counts).
    targeted: the class that the images should be taken for, one for all or one per image; None for any wrong class.
    bounds: the value range of a pixel, (low, high); None if the classifier declares it.
    layout: "NHWC", "NCHW", "HW" or "flat", where it cannot be recognised from the shape of the images.
    scores: "logits", "probabilities" or "log-probabilities"; None to recognise the kind from the first answer.
    attack: "best", or the name or an instance of any method: ``zt.VRSZHT(eta=0.01, m=10)``.
    seed: a whole number; the same seed gives the same attack. None draws one.
    search: other arguments of `zt.minimize`: run, retries, backoff, timeout, estimator, options, workers, callback ...

    The two evaluations use retries, backoff, jitter, timeout, per_second, fsync and chunk of the search, but always one
    worker. With ``run=FOLDER`` they have run folders of their own, FOLDER-before and FOLDER-after.

    Images that the classifier gets wrong as they are cost one query each, and are then left alone. If the search
    ends early because the model fails, a warning says so, and ``complete`` of the result is False; with a run
    folder, `AttackStopped` is raised instead, and the same call continues the attack.

    Returns
    -------
    An `Attacked`; with ``ks``, an `AttackPath`, which has one for each k.

    >>> import zerothresh as zt
    >>> x = np.random.default_rng(0).uniform(size=(20, 8, 8))
    >>> bright = lambda images: images.mean(axis=(1, 2))[:, None] * [-8.0, 8.0] + [4.0, -4.0]
    >>> found = zt.attack.universal(bright, x, (x.mean(axis=(1, 2)) > 0.5).astype(int), k=4, budget=800,
    ...                             bounds=(0, 1), seed=0)
    >>> found.promises()
    {'at most 4 pixels changed': True, 'values within [0, 1]': True, 'at most 800 queries': True}
    """
    check.one_of("granularity", granularity, ("pixel", "channel"))
    wanted = _wanted(k, ks)
    check.count("budget", budget)
    model = wrap(classifier, bounds=bounds, scores=scores)
    stack = stack_images(images, model, layout=layout, bounds=None if bounds is None else model.bounds)
    true = check_labels(labels, stack.n, codes=model.codes)
    if targeted is not None:
        check_labels(targeted, stack.n, what="targeted", codes=model.codes)
    method, path = attack, None
    if isinstance(attack, str) and attack == "best":
        method = FewPixel(stack.grid)
    if ks is not None:
        if not isinstance(method, FewPixel):
            raise ValueError(f"ks goes with attack='best' alone, not with {attack!r}: pass k, and attack once per k")
        method = path = FewPixelPath(tuple(wanted), method)
    constraint: dict[str, Any] = {
        "k": wanted[-1],
        "bounds": (-stack.width, stack.width),
        "groups": stack.groups if granularity == "pixel" else None,
    }
    # Whatever cannot work is refused here, before anything is paid for.
    everything = Universal(model, stack, true)
    _check_search(everything, method, seed, constraint, search)
    evaluations = Evaluations(everything, budget, constraint, search, len(wanted))
    clean = evaluations.before()
    check_labels(labels, stack.n, clean.classes, codes=model.codes)
    targets = None
    if targeted is not None:
        targets = check_labels(targeted, stack.n, clean.classes, "targeted", codes=model.codes)
    before = clean.labels
    chosen = np.flatnonzero((before == true) if targets is None else (before == true) & (targets != true))
    found, points = None, dict[int, Array]()
    if chosen.size:
        problem = Universal(
            model,
            stack.select(chosen),
            true[chosen],
            None if targets is None else targets[chosen],
            allow_nan=search.get("on_nan") == "worst",
        )
        found = _search(problem, evaluations, {"method": method, "seed": seed, **constraint, **search})
        points = {wanted[0]: np.array(found.x)} if path is None else path.points
    results = list[Attacked]()
    theta, after = np.zeros(stack.d), before
    for one in wanted:
        if found is not None and one in points and not (results and np.array_equal(points[one], theta)):
            attacked = evaluations.after(points[one], found.nfev)
            labelled = np.where(attacked.labels == NO_PREDICTION, before, attacked.labels)  # no prediction: not fooled
            theta, after = points[one], labelled
        queries = evaluations.queries + (0 if found is None else found.nfev)
        result = Attacked(theta, one, granularity, budget, stack, true, targets, before, after, queries, found, model)
        better = results and result.fooled.sum() < results[-1].fooled.sum()  # what fools more for a smaller k does here
        results.append(replace(results[-1], k=one) if better else result)
    # The classifier counts on its own, but knows nothing of other sessions and processes.
    queries = max(model.queries, evaluations.queries + (0 if found is None else found.nfev))
    results = [replace(result, queries=queries) for result in results]
    broken = [promise for result in results for promise, kept in result.promises().items() if not kept]
    if broken:
        raise RuntimeError(f"the attack broke a promise, which is a fault in zerothresh: {', '.join(broken)}")
    return results[0] if path is None else AttackPath(tuple(results))


def _wanted(k: Any, ks: Any) -> list[int]:
    """The values of k in increasing order."""
    if ks is not None and k is not None:
        raise ValueError("k and ks exclude each other: pass k for one perturbation, or ks for several")
    return [check.count("k", k)] if ks is None else values_of_k(ks)


def _search(problem: Universal, evaluations: Evaluations, arguments: dict[str, Any]) -> Result:
    """Run the search with what the evaluations leave of the budget; warn or raise if it ends early."""
    budget = evaluations.search_budget()
    try:
        found = minimize(problem, None, budget=budget, **arguments)
    except ValueError as error:
        if f"budget = {budget} " not in str(error):
            raise
        aside = evaluations.budget - budget
        raise ValueError(
            f"of the budget of {evaluations.budget}, {aside} queries are set aside for the two evaluations of all "
            f"images, and what is left is too little for the search: {error}"
        ) from None
    if found.status.success:
        return found
    if arguments.get("run") is not None and found.status is not Status.DIVERGED:
        cause = None if found.failure is None else found.failure.error
        raise AttackStopped(
            f"The search ended early: {found.message}. Nothing is lost: the same call continues the attack."
        ) from cause
    warnings.warn(
        f"the search ended early, so that few fooled images prove little: {found.message}",
        RuntimeWarning,
        stacklevel=3,
    )
    return found


def _check_search(problem: Universal, method: Any, seed: Any, constraint: dict[str, Any], given: Any) -> None:
    """Refuse arguments that `minimize` would refuse."""
    for name in given:
        if name not in (*_OF_THE_OPTIMIZER, *_OF_THE_CALLS):
            raise TypeError(
                f"an attack takes no argument {name!r}; beside its own, it takes these arguments of zt.minimize: "
                f"{', '.join(sorted((*_OF_THE_OPTIMIZER, *_OF_THE_CALLS)))}"
            )
    check.function("callback", given.get("callback"), "callback(progress)")
    if given.get("progress") is not None:
        check.flag("progress", given["progress"])
    Faults(
        given.get("retries", 0),
        given.get("backoff", 0.1),
        given.get("max_time"),
        given.get("on_nan", "stop"),
        given.get("on_error", "stop"),
        given.get("jitter", 0.0),
    )  # which checks them
    objective = as_objective(problem, None, None, vectorized=False)
    evaluator_for(
        objective, given.get("workers", 1), given.get("chunk"), given.get("timeout"), given.get("per_second")
    ).close()
    costs_of(problem.n, given.get("cost"), given.get("max_cost"))
    own = {name: given[name] for name in _OF_THE_OPTIMIZER if name in given}
    Optimizer(problem.d, n=problem.n, budget=_AMPLE, method=method, seed=seed, **constraint, **own)
