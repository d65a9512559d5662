from __future__ import annotations

import numpy as np
import pytest
from attack_victims import Linear, images, rounded, victims

import zerothresh as zt
from zerothresh.attack import universal
from zerothresh.attack.scores import BadScores, kind_of, log_probabilities, loss

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(40, 5)) * 3


def softmax(logits):
    top = np.exp(logits - logits.max(axis=1, keepdims=True))
    return top / top.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["logits", "probabilities", "log-probabilities"])
def test_the_loss_is_the_papers_whatever_the_scores_are(kind):
    scores = {"logits": LOGITS, "probabilities": softmax(LOGITS), "log-probabilities": np.log(softmax(LOGITS))}[kind]
    assert kind_of(scores) == kind
    F, y = np.log(softmax(LOGITS)), RNG.integers(5, size=40)
    others = [max(F[i, j] for j in range(5) if j != y[i]) for i in range(40)]
    wanted = [max(F[i, y[i]] - others[i], 0) for i in range(40)]
    assert np.allclose(loss(log_probabilities(scores, kind), y), wanted)
    aim = (y + 1) % 5
    wanted = [max(max(F[i, j] for j in range(5) if j != aim[i]) - F[i, aim[i]], 0) for i in range(40)]
    assert np.allclose(loss(log_probabilities(scores, kind), y, aim), wanted)


def test_scores_that_are_no_scores_are_refused():
    x, y = images(3), [0, 1, 2]
    for model, words in [
        (lambda x: np.full((len(x), 4), np.nan), "returned nan as the score of class 0 for image 0"),
        (lambda x: np.zeros(len(x)), r"returned shape \(3,\) for 3 images"),
        (lambda x: np.zeros((len(x), 4), complex), "complex128 scores"),
        (lambda x: np.zeros((1, 4)), r"shape \(1, 4\) for 3 images"),
    ]:
        with pytest.raises(BadScores, match=words):
            universal(model, x, y, k=1, budget=100, bounds=(-0.5, 0.5))
    with pytest.raises(BadScores, match="declared as probabilities, but"):
        universal(Linear(), x, y, k=1, budget=100, bounds=(-0.5, 0.5), scores="probabilities")
    with pytest.raises(ValueError, match="scores"):
        universal(Linear(), x, y, k=1, budget=100, bounds=(-0.5, 0.5), scores="percent")


def test_scores_that_turn_to_nan_on_the_way_stop_the_search_and_keep_the_best():
    model, x, y = victims()

    def ill(images):
        scores = model(images)
        return np.where(len(model.batches) == 6, np.nan, scores)

    with pytest.warns(RuntimeWarning, match="ended early"):
        found = universal(ill, x, y, k=1, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert found.search.status is zt.Status.BAD_VALUE
    assert not found.complete
    assert "ended early" in repr(found)
    assert all(found.promises().values())
    model.batches.clear()
    worst = universal(ill, x, y, k=1, budget=300, bounds=(-0.5, 0.5), seed=0, on_nan="worst")  # goes on
    assert worst.complete
    assert worst.queries > found.queries


def test_scores_that_are_nan_at_the_end_are_no_success_and_lose_nothing():
    model, x, y = victims()

    def ill(images):
        scores = model(images)
        changed = (images != x[0]).reshape(len(images), -1).sum(axis=1)
        scores[(changed > 0) & (changed < 10)] = np.nan  # image 0, once it is touched
        return scores

    found = universal(ill, x, y, k=1, budget=300, bounds=(-0.5, 0.5), seed=0, on_nan="worst")
    assert found.theta.any()
    assert not found.fooled[0]
    assert found.queries <= 300


def test_a_tie_is_a_success_only_if_the_classifier_says_another_class():
    level = np.log([[0.5, 0.5], [0.5, 0.5], [0.4, 0.6]])
    assert loss(level, np.array([0, 1, 1])).tolist() == pytest.approx([1e-9, 0, np.log(1.5)])
    assert loss(level, np.array([1, 0, 0]), np.array([0, 1, 1])).tolist() == pytest.approx([0, 1e-9, 0])


def test_a_model_that_rounds_its_scores_does_not_end_the_search_at_a_tie():
    x = np.random.default_rng(4).uniform(0.15, 0.95, size=(5, 6, 6))
    y = rounded(x).argmax(axis=1)
    for seed in range(6):
        found = universal(rounded, x, y, k=8, budget=2000, bounds=(0, 1), seed=seed)
        assert found.search.fun > 0 or found.success_rate == 1
