"""The evaluations of all images before and after the search, and the budget over many sessions."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from attack_victims import Linear, images, victims

from zerothresh.attack import Classifier, Universal, universal, wrap
from zerothresh.attack.images import stack_images
from zerothresh.attack.predictions import NO_PREDICTION, AttackStopped, predict_all

CALL = {"k": 1, "budget": 400, "bounds": (-0.5, 0.5), "seed": 1}


class Failing(Linear):
    """A classifier that raises instead of, or after, being asked once it has seen too many images."""

    def __init__(self, model, *, most, charged):
        vars(self).update(vars(model))
        self.most, self.charged = most, charged

    def __call__(self, images):
        if self.charged:
            self.seen += len(images)
        if self.seen > self.most:
            raise ConnectionError("gone")
        scores = super().__call__(images)
        self.seen -= len(images) if self.charged else 0
        return scores


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_attack_that_is_stopped_goes_on_and_pays_nothing_twice(tmp_path):
    model, x, y = victims()
    whole = universal(model, x, y, **CALL)
    paid, model.seen = model.seen, 0
    broken = Failing(model, most=100, charged=False)
    with pytest.raises(AttackStopped, match="the same call continues the attack"):
        universal(broken, x, y, **CALL, run=f"{tmp_path}/run/")
    assert names(tmp_path) == ["run", "run-before"]
    broken.most = 10**9
    found = universal(broken, x, y, **CALL, run=tmp_path / "run")
    assert names(tmp_path) == ["run", "run-after", "run-before"]
    assert np.array_equal(found.theta, whole.theta)
    assert broken.seen <= paid  # the call that failed is charged, and never reached the model
    assert broken.seen <= found.queries <= 400  # of both sessions
    seen = broken.seen
    again = universal(broken, x, y, **CALL, run=tmp_path / "run")  # it has ended: nothing is asked
    assert (broken.seen, again.queries) == (seen, found.queries)
    assert np.array_equal(again.after, found.after)
    assert again.classifier.scores == "logits"  # recognised in the first session


def test_a_raised_budget_goes_on_and_pays_for_another_evaluation_only(tmp_path):
    model, x, y = victims()
    run, small = tmp_path / "run", CALL | {"budget": 100}
    universal(model, x, y, **small, run=run)
    for _ in range(2):  # the second time, nothing is asked
        found = universal(model, x, y, **CALL, run=run)
        assert model.seen == found.queries <= 400
    assert found.search.budget == 400 - 3 * 12  # one evaluation before the search, and two after it
    assert names(tmp_path) == ["run", "run-after", "run-after-2", "run-before"]
    with pytest.raises(ValueError, match=r"run-before .*budget"):
        universal(model, x, y, **small, run=run)
    assert model.seen == found.queries


def test_the_folders_of_another_attack_are_refused(tmp_path):
    model, x, y = victims()
    universal(model, x, y, **CALL, run=tmp_path / "run")
    seen = model.seen
    for folder in ("run-before", "run-after"):
        with pytest.raises(ValueError, match=f"{folder} belongs to an attack on another model or on other images"):
            universal(model, x[:5], y[:5], **CALL, run=tmp_path / "run")
        (tmp_path / folder).rename(tmp_path / f"other-{folder}")
    for folder in ("run-before", "run-after"):
        (tmp_path / f"other-{folder}").rename(tmp_path / folder)
    with pytest.raises(ValueError, match=r"/run .* n = 12, not 11"):  # one image is not attacked, by another label
        universal(model, x, [(y[0] + 1) % 4, *y[1:]], **CALL, run=tmp_path / "run")
    with pytest.raises(ValueError, match=r"run-before .* k = 1, not 2"):
        universal(model, x, y, **CALL | {"k": 2}, run=tmp_path / "run")
    assert model.seen == seen


def test_evaluations_that_fail_are_in_the_budget_of_all_sessions(tmp_path):
    model, x, y = victims()
    broken = Failing(model, most=0, charged=True)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            universal(broken, x, y, **CALL, run=tmp_path / "run")
    broken.most = 10**9
    found = universal(broken, x, y, **CALL, run=tmp_path / "run")
    assert broken.seen == found.queries <= 400
    assert found.search.budget == 400 - 4 * 12  # three evaluations before the search, and one after it


def test_an_evaluation_that_fails_half_way_asks_for_the_other_half_only(tmp_path):
    model, x, y = victims()
    broken = Failing(model, most=9, charged=False)
    classifier = Classifier(broken, bounds=(-0.5, 0.5), batch=5)
    with pytest.raises(ConnectionError):
        universal(classifier, x, y, **CALL, run=tmp_path / "run")
    assert broken.batches == [5, 5]
    broken.most = 10**9
    found = universal(classifier, x, y, **CALL, run=tmp_path / "run")
    assert broken.batches[2] == 2
    assert found.queries == broken.seen + 2  # the call that never reached the model is charged


def test_an_attack_that_its_callback_ends_again_and_again_keeps_the_budget(tmp_path):
    model, x, y = victims()
    call = CALL | {"run": tmp_path / "run"}

    def enough(progress):
        raise StopIteration

    for _ in range(2):
        found = universal(model, x, y, **call, callback=enough)
        assert model.seen == found.queries <= 400
    seen = model.seen
    with pytest.raises(ValueError, match=r"too small to continue the attack .* raise the budget to at least 424"):
        universal(model, x, y, **call)
    assert model.seen == seen
    found = universal(model, x, y, **call | {"budget": 424})
    assert model.seen == found.queries <= 424


def test_an_evaluation_that_the_budget_does_not_cover_is_not_begun(tmp_path):
    model, x, y = victims()
    whole = universal(model, x, y, **CALL)
    broken = Failing(model, most=whole.queries - 12, charged=True)  # it fails once the search is over
    broken.seen, call = 0, CALL | {"run": tmp_path / "run"}
    for _ in range((400 - whole.queries) // 12 + 1):
        with pytest.raises(ConnectionError):
            universal(broken, x, y, **call)
    with pytest.raises(
        ValueError, match=r"12 queries are needed to evaluate .* 0 are left of the budget of 400: raise"
    ):
        universal(broken, x, y, **call)
    assert broken.seen == 400
    broken.most = 10**9
    found = universal(broken, x, y, **call | {"budget": 424})
    assert np.array_equal(found.theta, whole.theta)
    assert broken.seen == found.queries <= 424


def test_labels_and_targets_are_corrected_without_another_evaluation(tmp_path):
    model, x, y = victims()
    for what, wrong in {"labels": {"labels": y + 3}, "targeted": {"labels": y, "targeted": 7}}.items():
        with pytest.raises(ValueError, match=rf"{what} name class \d; the classifier has classes 0 to 3"):
            universal(model, x, **wrong, **CALL, run=tmp_path / "run")
        assert model.seen == 12
    assert universal(model, x, y, **CALL, targeted=2, run=tmp_path / "run").queries == model.seen


def test_a_model_that_hangs_is_given_up_after_the_timeout():
    model, x, y = victims()
    over = threading.Event()

    def hangs(images):
        over.wait()
        return model(images)

    try:
        with pytest.raises(TimeoutError):
            universal(hangs, x, y, **CALL, timeout=0.05)
    finally:
        over.set()


def test_a_stopped_evaluation_raises_what_stopped_it():
    model, x, y = victims()

    def interrupted(images):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        universal(interrupted, x, y, **CALL)
    broken = Failing(model, most=0, charged=True)
    with pytest.raises(AttackStopped, match="before the search did not complete: the budget is spent"):
        universal(broken, x, y, **CALL | {"budget": 60}, retries=9, backoff=0)
    assert broken.seen == 60


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_predictions_come_back_as_the_model_gave_them(kind):
    def model(images):
        scores = np.random.default_rng(3).dirichlet(np.ones(7), size=12)[: len(images)]
        scores[4] = np.nan
        return scores if kind == "probabilities" else 10 * scores

    classifier = wrap(model, bounds=(-0.5, 0.5))
    problem = Universal(classifier, stack_images(images(), classifier, layout=None, bounds=None), np.zeros(12, int))
    found, result = predict_all(problem, np.zeros(problem.d), budget=12, constraint={"k": 1}, allow_nan=True)
    wanted = np.where(np.arange(12) == 4, NO_PREDICTION, np.nan_to_num(model(images())).argmax(axis=1))
    assert np.array_equal(found.labels, wanted)
    assert (found.classes, found.kind, result.nfev) == (7, kind, 12)


@pytest.mark.parametrize("seed", range(6))
def test_no_session_goes_beyond_the_budget_whatever_stops_it(seed, tmp_path):
    model, x, y = victims()
    rng = np.random.default_rng(seed)
    seen, budget = 0, 100

    def shaky(images):
        nonlocal seen
        seen += len(images)
        if rng.random() < 0.1:
            raise ConnectionError("try again")
        return model(images)

    def impatient(progress):
        if rng.random() < 0.2:
            raise StopIteration

    for _ in range(6):
        budget += int(rng.choice([0, 0, 50]))
        classifier = Classifier(shaky, bounds=(-0.5, 0.5), batch=5)
        try:
            found = universal(
                classifier,
                x,
                y,
                k=2,
                budget=budget,
                seed=1,
                run=tmp_path / "run",
                retries=seed % 2,
                backoff=0,
                callback=impatient,
            )
            assert seen <= found.queries <= budget
        except (ConnectionError, AttackStopped, ValueError):
            pass
        assert seen <= budget
