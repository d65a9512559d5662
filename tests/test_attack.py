from __future__ import annotations

import pickle
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.attack import Classifier, FewPixel, Universal, universal, wrap
from zerothresh.attack.images import stack
from zerothresh.attack.scores import BadScores, kind_of, log_probabilities, loss
from zerothresh.datasets import cifar10

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(40, 5)) * 3


def softmax(logits):
    top = np.exp(logits - logits.max(axis=1, keepdims=True))
    return top / top.sum(axis=1, keepdims=True)


class Linear:
    """A classifier of colour images, (images, 6, 5, 3) or channels first, with weights of its own."""

    def __init__(self, classes=4, first=False, seed=1):
        self.weights = np.random.default_rng(seed).normal(size=(6 * 5 * 3, classes))
        self.first, self.seen, self.batches = first, 0, []

    def __call__(self, images):
        self.seen += len(images)
        self.batches.append(len(images))
        shown = images.transpose(0, 2, 3, 1) if self.first else images
        assert shown.shape[1:] == (6, 5, 3)
        return shown.reshape(len(images), -1).astype(float) @ self.weights


def images(n=12, seed=2):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 6, 5, 3)).astype(np.float32)


def victims(n=12, **options):
    model = Linear(**options)
    x = images(n)
    y = model(x.transpose(0, 3, 1, 2) if model.first else x).argmax(axis=1)
    model.seen, model.batches = 0, []
    return model, x, y


# Scores and the loss.


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


def test_a_tie_is_a_success_only_if_the_classifier_says_another_class():
    level = np.log([[0.5, 0.5], [0.5, 0.5], [0.4, 0.6]])
    assert loss(level, np.array([0, 1, 1])).tolist() == pytest.approx([1e-9, 0, np.log(1.5)])
    assert loss(level, np.array([1, 0, 0]), np.array([0, 1, 1])).tolist() == pytest.approx([0, 1e-9, 0])


def rounded(images):
    bright = np.round(1 / (1 + np.exp(-12 * (images.reshape(len(images), -1).mean(axis=1) - 0.5))), 1)
    return np.stack([bright, 1 - bright], axis=1)


def test_a_model_that_rounds_its_scores_does_not_end_the_search_at_a_tie():
    x = np.random.default_rng(4).uniform(0.15, 0.95, size=(5, 6, 6))
    y = rounded(x).argmax(axis=1)
    for seed in range(6):
        found = universal(rounded, x, y, k=8, budget=2000, bounds=(0, 1), seed=seed)
        assert found.search.fun > 0 or found.success_rate == 1


# Images.


def test_channels_last_and_channels_first_give_the_same_attack():
    last, x, y = victims()
    first, _, _ = victims(first=True)
    one = universal(last, x, y, k=3, budget=400, bounds=(-0.5, 0.5), seed=5)
    two = universal(Classifier(first, layout="NCHW", bounds=(-0.5, 0.5)), x, y, k=3, budget=400, seed=5)
    assert one.perturbation.shape == two.perturbation.shape == (6, 5, 3)
    assert one.images.shape == two.images.shape == x.shape
    assert one.pixels == two.pixels == 3
    for found in (one, two):
        assert np.allclose(found.images, np.clip(x + found.perturbation, -0.5, 0.5), atol=1e-6)
    three = universal(first, x.transpose(0, 3, 1, 2), y, k=3, budget=400, bounds=(-0.5, 0.5), seed=5)
    assert np.array_equal(three.perturbation.transpose(1, 2, 0), two.perturbation)


BAD = [
    ({"images": images() * 3}, "values from -1.49.* outside of the value range"),
    ({"images": images(4).astype(complex)}, "must be an array of numbers"),
    ({"images": images(0)}, "at least one image"),
    ({"images": np.full((2, 6, 5, 3), np.nan)}, "image 0 holds a value that is not finite"),
    ({"images": np.zeros((12, 3, 6, 3))}, r"may be laid out as NHWC or as NCHW"),
    ({"images": np.zeros((12, 7, 6, 5))}, r"may be laid out as NHWC or as NCHW"),
    ({"layout": "NHCW"}, "layout"),
    ({"layout": "HW"}, r"layout='HW' does not fit images of shape \(6, 5, 3\)"),
    ({"labels": None}, "labels are missing"),
    ({"labels": [0, 1]}, "labels must be 12 whole numbers"),
    ({"labels": np.zeros(12)}, "labels must be 12 whole numbers, .* not float64"),
    ({"labels": [9] * 12}, "name class 9; the classifier has classes 0 to 3"),
    ({"labels": [-1] * 12}, "name class -1"),
    ({"targeted": 7}, "targeted name class 7"),
    ({"k": 0}, "k must be"),
    ({"k": 31}, "k = 31 is larger than the number of groups = 30"),
    ({"budget": 24}, "budget = 24 is too small: 12 queries are kept for a look at the 12 images"),
    ({"granularity": "patch"}, "granularity"),
    ({"bounds": (1, 0)}, "bounds must be the value range of a pixel"),
    ({"bounds": None, "images": images() * 1e4}, "no usual value range: pass bounds"),
    ({"classifier": 3}, "the classifier must be a callable"),
    ({"classifier": "nowhere.onnx"}, "there is no file nowhere.onnx"),
    ({"attack": "worst"}, "method"),
]


@pytest.mark.parametrize(("wrong", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_bad_input_is_refused_with_a_sentence(wrong, words):
    model, x, y = victims()
    told = {"classifier": model, "images": x, "labels": y, "k": 2, "budget": 200, "bounds": (-0.5, 0.5)} | wrong
    with pytest.raises(ValueError, match=words):
        universal(told.pop("classifier"), told.pop("images"), told.pop("labels"), **told)


def test_a_net_with_another_input_size_is_refused():
    net = zt.attack.wrap(Path(zt.attack.__file__).parent / "nets" / "cifar10_small.onnx")
    with pytest.raises(ValueError, match=r"takes images of shape \(3, 32, 32\) \(NCHW\), but these are \(28, 28, 3\)"):
        universal(net, np.zeros((2, 28, 28, 3)), [0, 0], k=1, budget=100)
    estimator = zt.attack.digits(3)[0]
    with pytest.raises(ValueError, match=r"takes 64 numbers an image, but these are of shape \(9, 9\)"):
        universal(estimator, np.zeros((2, 9, 9)), [0, 0], k=1, budget=100)


def test_a_value_range_that_nobody_said_is_guessed_with_a_warning():
    model, x, y = victims()
    with pytest.warns(UserWarning, match=r"look like \[-0.5, 0.5\], which is taken"):
        found = universal(model, x, y, k=1, budget=100, seed=0)
    assert not found.stack.declared


def test_a_file_that_is_no_net_is_refused(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no net that onnxruntime can read"):
        wrap(tmp_path / "net.onnx")


# The attack.


@pytest.mark.parametrize("granularity", ["pixel", "channel"])
@pytest.mark.parametrize("attack", ["best", "auto", zt.SZOHT(eta=0.01)])
@pytest.mark.parametrize("budget", [100, 333])
def test_k_the_range_and_the_budget_hold_by_the_classifiers_own_count(granularity, attack, budget):
    model, x, y = victims()
    found = universal(
        model, x, y, k=4, budget=budget, granularity=granularity, attack=attack, bounds=(-0.5, 0.5), seed=3
    )
    assert model.seen == found.queries <= budget
    assert found.search.nfev == model.seen - 2 * len(x)
    changed = (found.perturbation != 0).any(axis=2).sum() if granularity == "pixel" else (found.perturbation != 0).sum()
    assert changed <= 4
    assert found.images.min() >= -0.5
    assert found.images.max() <= 0.5
    assert list(found.promises().values()) == [True] * 3
    assert np.array_equal(found.after, model(found.images).argmax(axis=1))
    assert found.success_rate == (found.after != y).mean()


def test_images_that_are_wrong_as_they_are_cost_one_look_and_count_for_nothing():
    model, x, y = victims()
    y[:5] = (y[:5] + 1) % 4
    found = universal(model, x, y, k=2, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert found.right.tolist() == [False] * 5 + [True] * 7
    assert not found.fooled[:5].any()
    assert found.success_rate == found.fooled.sum() / 7
    nothing = universal(model, x[:5], y[:5], k=2, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert nothing.search is None
    assert np.isnan(nothing.success_rate)
    assert nothing.queries == 5
    assert not nothing.perturbation.any()


def test_a_targeted_attack_counts_only_its_target():
    model, x, y = victims()
    found = universal(model, x, y, k=25, budget=3000, bounds=(-0.5, 0.5), targeted=2, seed=0)
    aimed = found.right & (y != 2)
    assert 0 < aimed.sum() < found.right.sum()
    assert np.array_equal(found.fooled, aimed & (found.after == 2))
    assert found.success_rate == found.fooled[aimed].mean() > 0.7  # those of class 2 count for nothing
    own = universal(model, x[y == 2], y[y == 2], k=3, budget=300, bounds=(-0.5, 0.5), targeted=2, seed=0)
    assert np.isnan(own.success_rate)
    assert (own.fooled.sum(), own.ended) == (0, "all right images are of the target class")


def test_the_same_seed_gives_the_same_attack_and_queries_come_in_batches():
    model, x, y = victims()
    one = universal(model, x, y, k=3, budget=500, bounds=(-0.5, 0.5), seed=7)
    calls = len(model.batches)
    two = universal(model, x, y, k=3, budget=500, bounds=(-0.5, 0.5), seed=7)
    assert np.array_equal(one.theta, two.theta)
    assert calls < one.queries / 4


def test_an_attack_that_is_stopped_goes_on_and_pays_nothing_twice(tmp_path):
    model, x, y = victims()
    whole = universal(model, x, y, k=1, budget=400, bounds=(-0.5, 0.5), seed=1)
    paid = model.seen

    def broken(images):
        if model.seen > limit:
            raise ConnectionError("gone")
        return model(images)

    model.seen, limit = 0, 100
    call = {"k": 1, "budget": 400, "bounds": (-0.5, 0.5), "seed": 1}
    with pytest.raises(RuntimeError, match="the same call goes on"):
        universal(broken, x, y, **call, run=f"{tmp_path}/run/")
    limit = 10**9
    found = universal(broken, x, y, **call, run=tmp_path / "run")
    assert np.array_equal(found.theta, whole.theta)
    assert model.seen <= paid  # the call that failed is charged, and never reached the model
    assert model.seen <= found.queries <= 400  # of both sessions
    seen = model.seen
    again = universal(broken, x, y, **call, run=tmp_path / "run")  # it has ended: nothing is asked
    assert (model.seen, again.queries) == (seen, found.queries)
    assert np.array_equal(again.after, found.after)
    for _ in range(2):
        more = universal(broken, x, y, **call | {"budget": 600}, run=tmp_path / "run")  # the last look was paid already
        assert model.seen <= more.queries <= 600
        seen = model.seen
    assert np.array_equal(more.theta, universal(broken, x, y, **call | {"budget": 600}, run=tmp_path / "run").theta)
    assert model.seen == seen
    with pytest.raises(ValueError, match="belongs to another attack"):
        universal(model, x[:5], y[:5], k=1, budget=400, bounds=(-0.5, 0.5), seed=1, run=tmp_path / "run")


def test_looks_that_fail_are_in_the_budget_of_all_sessions(tmp_path):
    model, x, y = victims()
    fail, call = True, {"k": 1, "budget": 400, "bounds": (-0.5, 0.5), "seed": 1, "run": tmp_path / "run"}

    def broken(images):
        scores = model(images)
        if fail:
            raise ConnectionError("gone")
        return scores

    for _ in range(2):
        with pytest.raises(ConnectionError):
            universal(broken, x, y, **call)
    fail = False
    found = universal(broken, x, y, **call)
    assert model.seen == found.queries <= 400


def test_an_attack_that_its_callback_ends_again_and_again_keeps_the_budget(tmp_path):
    model, x, y = victims()
    call = {"k": 1, "budget": 400, "bounds": (-0.5, 0.5), "seed": 1, "run": tmp_path / "run"}

    def enough(progress):
        raise StopIteration

    for _ in range(3):
        found = universal(model, x, y, **call, callback=enough)
        assert model.seen == found.queries <= 400
    with pytest.raises(ValueError, match=r"look at what the attack did, and .* left of the budget of 400: raise it"):
        universal(model, x, y, **call)
    found = universal(model, x, y, **call | {"budget": 500})
    assert model.seen == found.queries <= 500


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


def test_calls_that_fail_are_made_again_within_the_budget():
    model, x, y = victims()
    times = 0

    def shaky(images):
        nonlocal times
        times += 1
        answer = model(images)
        if times % 4 == 1:
            raise ConnectionError("try again")
        return answer

    found = universal(shaky, x, y, k=2, budget=500, bounds=(-0.5, 0.5), seed=1, retries=3, backoff=0)
    assert model.seen == found.queries <= 500
    assert found.search.success


# The search.


def test_few_pixel_looks_at_corners_only_and_keeps_whole_groups():
    seen = []

    class Sphere:
        d, n = 12, 5

        def values(self, points, components):
            seen.extend(points)
            return ((points - 0.3) ** 2).sum(axis=1) + components

    low, high = np.full(12, -1.0), np.full(12, 2.0)
    low[:3] = 0.0
    groups = np.repeat(np.arange(4), 3)
    found = zt.minimize(Sphere(), None, 2, budget=300, method=FewPixel(), bounds=(low, high), groups=groups, seed=0)
    assert all(np.isin(point, (-1.0, 0.0, 2.0)).all() for point in seen)
    assert all((point[:3] >= 0).all() for point in seen)
    assert np.unique(groups[found.support]).size <= 2
    with pytest.raises(ValueError, match="finite bounds"):
        zt.minimize(Sphere(), None, 2, budget=300, method=FewPixel(), seed=0)
    for wrong in ({"candidates": 0}, {"first": 0}, {"passes": 0.5}, {"share": 0.0}, {"share": 1.5}, {"grid": (8, 8)}):
        with pytest.raises(ValueError, match="must be"):
            FewPixel(**wrong)


def test_few_pixel_finds_the_places_that_matter_and_stops_at_zero():
    class Needles:
        d, n = 200, 8

        def values(self, points, components):
            return np.maximum(3.0 - points[:, 10] + points[:, 77] - points[:, 150], 0) * (1 + components % 3)

    found = zt.minimize(Needles(), None, 3, budget=60_000, method=FewPixel(), bounds=(-1, 1), seed=0)
    assert found.fun == 0
    assert found.support.tolist() == [10, 77, 150]
    assert found.status is zt.Status.CONVERGED


class Recorder:
    """A problem that keeps what it was asked, of 5 x 5 pixels with three channels first; nothing solves it."""

    d = 75

    def __init__(self, n=8, flat=False):
        self.n, self.flat, self.batches = n, flat, []

    def values(self, points, components):
        self.batches.append((points.copy(), components.copy()))
        return np.ones(len(points)) if self.flat else 2.0 + np.cos(points @ np.arange(75) + components)

    def run(self, budget, **arguments):
        groups = np.tile(np.arange(25), 3)
        method = FewPixel((5, 5, 5, 1), **arguments)
        return zt.minimize(self, None, 1, budget=budget, method=method, bounds=(-1, 1), groups=groups, seed=5)


def test_few_pixel_turns_a_colour_or_moves_by_one_or_swaps():
    problem = Recorder(flat=True)  # no candidate is better: all are made of the start
    found = problem.run(3000)
    asked = np.unique(np.concatenate([points for points, _ in problem.batches]), axis=0).reshape(-1, 3, 25)
    assert ((np.abs(asked).sum(axis=1) == 3).sum(axis=1) == 1).all()  # one whole pixel each
    start, at = found.x.reshape(3, 25), int(found.support[0])
    spots = np.abs(asked).sum(axis=1).argmax(axis=1)
    turned = asked[spots == at][:, :, at]
    assert sorted(np.abs(turned - start[:, at]).sum(axis=1).tolist()) == [0, 2, 2, 2]  # itself, and each colour turned
    near = np.maximum(abs(spots // 5 - at // 5), abs(spots % 5 - at % 5)) == 1
    same = np.array([np.array_equal(image[:, spot], start[:, at]) for image, spot in zip(asked, spots, strict=True)])
    beside = sum(0 <= at // 5 + y < 5 and 0 <= at % 5 + x < 5 for y in (-1, 0, 1) for x in (-1, 0, 1)) - 1
    assert (near & same).sum() == beside  # all neighbours were tried, none across an edge
    assert len(asked) > 100  # of the 200 pixels and colours


def test_few_pixel_does_not_look_at_the_budget():
    short, long = Recorder(), Recorder()
    short.run(400), long.run(4000)
    for (points, components), (others, more) in zip(short.batches[:-8], long.batches, strict=False):
        assert np.array_equal(points, others)
        assert np.array_equal(components, more)


def test_few_pixel_asks_more_at_once_when_races_fail():
    problem = Recorder()
    problem.run(6000)
    sizes = [len(points) for points, _ in problem.batches]
    assert max(sizes[:4]) <= 8
    assert max(sizes) == 128  # sixteen races of four, on two components


def test_few_pixel_uses_few_of_many_components_first():
    problem = Recorder(n=100)
    found = problem.run(20_000, passes=20)
    used, counts = set(), []
    for _, components in problem.batches:
        used |= set(components.tolist())
        counts.append(len(used))
    assert sorted(set(counts)) == [16, 32, 64, 100]
    began = [counts.index(count) for count in (16, 32, 64, 100)]
    asked = np.cumsum([len(components) for _, components in problem.batches])
    for at, after, count in zip(began, began[1:], (16, 32, 64), strict=False):
        assert 19 <= (asked[after - 1] - asked[at]) / count < 40  # calls of each, up to the end of a race
    whole = problem.values(np.repeat(found.x[None], 100, axis=0), np.arange(100)).mean()
    assert found.fun == pytest.approx(whole)  # F over all, not over those in use


def test_an_attacked_image_is_the_sum_clipped():
    model, x, y = victims()
    classifier = wrap(model, bounds=(-0.5, 0.5))
    held = stack(x, classifier, layout=None, bounds=(-0.5, 0.5))
    problem = Universal(classifier, held, y)
    points = np.random.default_rng(0).normal(size=(5, held.d))
    of = np.array([3, 0, 3, 7, 1])
    wanted = np.clip((held.flat[of] + points).astype(np.float32), -0.5, 0.5)
    assert np.array_equal(problem.attacked(points, of).reshape(5, -1), wanted)
    one = np.clip((held.flat[of] + points[:1]).astype(np.float32), -0.5, 0.5)
    assert np.array_equal(problem.attacked(points[:1], of).reshape(5, -1), one)


def test_few_pixel_fits_places_that_are_all_held():
    model, x, y = victims()
    found = universal(model, x, y, k=30, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert found.pixels == 30


# Models of other libraries, told by where their class comes from; the libraries themselves need not be there.


def test_an_estimator_of_scikit_learn_is_taken():
    classifier, x, y = zt.attack.digits(3)
    assert (classifier.bounds, classifier.scores, classifier.layout) == ((0.0, 16.0), "probabilities", "flat")
    found = universal(classifier, x, y, k=3, budget=2500, seed=0)
    assert found.right.mean() > 0.8
    assert found.success_rate > 0.9
    assert all(found.promises().values())
    alike = {"k": 3, "budget": 2500, "seed": 0, "attack": FewPixel()}  # flat images have no neighbours: nor here
    flat = universal(classifier, x.reshape(len(x), -1), y, **alike)
    assert np.array_equal(flat.perturbation.reshape(8, 8), universal(classifier, x, y, **alike).perturbation)


def test_labels_are_those_of_the_estimator():
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    x = images(40)
    words = np.array(["low", "mid", "top"])[np.digitize(x.mean(axis=(1, 2, 3)), (-0.01, 0.01))]
    named = LogisticRegression(C=1e4).fit(x.reshape(40, -1), words)
    found = universal(named, x, words, k=3, budget=400, bounds=(-0.5, 0.5), targeted="low", seed=0)
    assert found.right.all()
    assert np.array_equal(found.attacked, words != "low")
    with pytest.raises(ValueError, match="name class 'high'; the classifier has 'low', 'mid', 'top'"):
        universal(named, x, np.array(["high"] * 40), k=3, budget=400, bounds=(-0.5, 0.5))
    numbers = np.searchsorted(named.classes_, words) + 1  # 1, 2, 3
    counted = LogisticRegression(C=1e4).fit(x.reshape(40, -1), numbers)
    assert universal(counted, x, numbers, k=3, budget=400, bounds=(-0.5, 0.5), seed=0).right.all()
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        wrap(SVC(decision_function_shape="ovo").fit(x.reshape(40, -1), numbers))


def test_what_the_search_would_refuse_is_refused_before_anything_is_paid():
    model, x, y = victims()
    for wrong, said in [
        ({"k": 31}, "k = 31"),
        ({"attack": "bset"}, "bset"),
        ({"seed": "one"}, "seed"),
        ({"retries": -1}, "retries"),
        ({"on_nan": "retry"}, "needs retries"),
        ({"include": [3]}, "include"),
        ({"typo": 1}, "typo"),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            universal(model, x, y, **{"k": 3, "budget": 400, "bounds": (-0.5, 0.5), **wrong})
        assert model.seen == 0, wrong
    with pytest.raises(ValueError, match="of the budget of 45, 24 are kept for the two looks"):
        universal(model, x, y, k=3, budget=45, bounds=(-0.5, 0.5))


def test_few_pixel_stays_at_corners_that_differ_and_refuses_a_grid_that_does_not_fit():
    seen, rng = [], np.random.default_rng(0)
    low, high = -rng.uniform(1, 2, size=64), rng.uniform(1, 2, size=64)

    def bowl(points, components):
        seen.extend(points)
        return 9 + points @ np.sin(np.arange(64)) + components

    told = {"n": 3, "vectorized": True, "budget": 900, "bounds": (low, high), "seed": 0}
    zt.minimize(bowl, 64, 2, method=FewPixel((8, 8, 8, 1)), **told)
    points = np.array(seen)
    assert ((points == 0) | (points == low) | (points == high)).all()
    with pytest.raises(ValueError, match="reaches beyond the 64 coordinates"):
        zt.minimize(bowl, 64, 2, method=FewPixel((9, 8, 8, 1)), **told)


def test_a_net_of_a_fixed_batch_is_given_whole_batches():
    from zerothresh.attack.adapters import Net

    asked = []

    def run(_, feed):
        asked.append(feed["images"].shape)
        return [feed["images"].reshape(8, -1)[:, :4]]

    net = object.__new__(Net)
    net.wanted, net.given = np.float32, types.SimpleNamespace(name="images", shape=[8, 6, 5, 3])
    net.session = types.SimpleNamespace(run=run)
    x = images(11)
    made = Classifier(net, bounds=(-0.5, 0.5), batch=8)
    assert np.array_equal(made(x).argmax(axis=1), x.reshape(11, -1)[:, :4].argmax(axis=1))
    assert asked == [(8, 6, 5, 3)] * 2
    assert made.queries == 11


def test_queries_of_other_processes_are_counted():
    from concurrent.futures import ProcessPoolExecutor

    x = np.random.default_rng(4).uniform(0.15, 0.95, size=(6, 5, 5))
    told = {"k": 1, "budget": 200, "bounds": (0, 1), "seed": 0}
    y = rounded(x).argmax(axis=1)
    with ProcessPoolExecutor(2) as pool:
        apart = universal(rounded, x, y, **told, workers=pool)
    here = universal(rounded, x, y, **told)
    assert apart.queries == here.queries > 100
    assert np.array_equal(apart.theta, here.theta)


def test_two_files_of_one_name_are_two_nets(tmp_path):
    shipped = (Path(zt.attack.__file__).parent / "nets" / "cifar10_small.onnx").read_bytes()
    assert b"automobile" in shipped  # a text of the file, which does not matter to the net
    for folder, content in (("a", shipped), ("b", shipped.replace(b"automobile", b"autombbile"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.onnx").write_bytes(content)
    one, two = wrap(tmp_path / "a" / "net.onnx"), wrap(tmp_path / "b" / "net.onnx")
    held = stack(np.zeros((1, 3, 32, 32)), one, layout=None, bounds=None)
    prints = [Universal(net, held, np.array([0])).fingerprint for net in (one, two, wrap(tmp_path / "a" / "net.onnx"))]
    assert prints[0] == prints[2] != prints[1]


def test_an_estimator_without_probabilities_is_taken():
    from sklearn.linear_model import RidgeClassifier

    x = images()
    y = (x.mean(axis=(1, 2, 3)) > 0).astype(int)
    with pytest.raises(ValueError, match="has not been fitted"):
        wrap(RidgeClassifier())
    made = wrap(RidgeClassifier().fit(x.reshape(12, -1), y), bounds=(-0.5, 0.5))
    assert made(x).shape == (12, 2)
    assert made.scores == "logits"


def stand_in(module, name, **parts):
    return type(name, (), {"__module__": module, **parts})


def test_a_classifier_of_art_is_taken():
    model, x, y = victims(first=True)
    kind = stand_in(
        "art.estimators.classification.pytorch", "PyTorchClassifier",
        clip_values=(-0.5, 0.5), input_shape=(3, 6, 5), channels_first=True, predict=lambda self, x: model(x),
    )  # fmt: skip
    made = wrap(kind())
    assert (made.bounds, made.layout, made.shape) == ((-0.5, 0.5), "NCHW", (3, 6, 5))
    assert universal(kind(), x, y, k=3, budget=300, seed=0).queries == model.seen


def test_a_model_of_foolbox_is_taken():
    model, x, y = victims()
    bounds = types.SimpleNamespace(lower=-0.5, upper=0.5)
    kind = stand_in("foolbox.models.numpy", "NumPyModel", bounds=bounds, __call__=lambda self, x: model(x))
    assert wrap(kind()).bounds == (-0.5, 0.5)
    assert universal(kind(), x, y, k=3, budget=300, seed=0).queries == model.seen
    other = stand_in("foolbox.models.jax", "JAXModel", bounds=bounds, __call__=lambda self, x: model(x))
    with pytest.raises(ValueError, match="not JAXModel: pass a callable"):
        wrap(other())


def test_a_module_of_torch_is_taken():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(90, 4))
    made = wrap(net, bounds=(-0.5, 0.5))
    assert made.layout == "NCHW"
    assert made(images().transpose(0, 3, 1, 2)).shape == (12, 4)


def test_the_attack_of_art_gives_attacked_images(monkeypatch):
    model, x, y = victims()
    base = type("EvasionAttack", (), {"attack_params": (), "__init__": lambda self, estimator: setattr(self, "estimator", estimator)})  # fmt: skip
    parts = {
        "art": {}, "art.attacks": {}, "art.attacks.attack": {"EvasionAttack": base}, "art.estimators": {},
        "art.estimators.classification": {}, "art.estimators.classification.classifier": {"ClassifierMixin": object},
        "art.estimators.estimator": {"BaseEstimator": object},
    }  # fmt: skip
    for name, content in parts.items():
        made = types.ModuleType(name)
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.delitem(sys.modules, "zerothresh.attack.art", raising=False)
    kind = stand_in(
        "art.estimators.x", "BlackBoxClassifier",
        clip_values=(-0.5, 0.5), input_shape=(6, 5, 3), channels_first=False, predict=lambda self, x: model(x),
    )  # fmt: skip
    attack = zt.attack.ZeroThreshAttack(kind(), k=3, budget=400, seed=0)
    attacked = attack.generate(x, np.eye(4)[y])
    assert attacked.shape == x.shape
    assert attacked.dtype == x.dtype
    assert (np.abs(attacked - x).max(axis=(0, 3)) > 1e-6).sum() <= 3
    assert attack.found.queries == model.seen <= 400
    assert np.array_equal(attack.generate(x), attacked)  # the classifier's own answers are the labels here
    sys.modules.pop("zerothresh.attack.art", None)
    with pytest.raises(AttributeError, match="has no 'Attack'"):
        zt.attack.Attack


def test_the_attack_of_art_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "art", None)
    monkeypatch.delitem(sys.modules, "zerothresh.attack.art", raising=False)
    with pytest.raises(ImportError, match="pip install adversarial-robustness-toolbox"):
        zt.attack.ZeroThreshAttack(None)
    sys.modules.pop("zerothresh.attack.art", None)


def test_a_classifier_can_be_sent_to_another_process():
    net = wrap(Path(zt.attack.__file__).parent / "nets" / "cifar10_small.onnx")
    x = zt.datasets.load_cifar10_paper("ship").data.transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5
    assert np.array_equal(pickle.loads(pickle.dumps(net))(x), net(x))  # noqa: S301


# The net and the images that come with the package.


def test_the_shipped_net_is_as_good_as_its_card_says():
    folder = Path(zt.attack.__file__).parent / "nets"
    card = (folder / "README.md").read_text()
    assert (folder / "cifar10_small.onnx").stat().st_size < 1_000_000
    net = wrap(folder / "cifar10_small.onnx")
    assert (net.bounds, net.scores, net.classes) == ((-0.5, 0.5), "log-probabilities", cifar10.CLASSES)
    table = zt.datasets.load_cifar10_paper()
    x = stack(table.data.astype(np.float32) / 255 - 0.5, net, layout=None, bounds=None)
    right = int((Universal(net, x, table.target).predictions(np.zeros(x.d)) == table.target).sum())
    assert f"; {right} of the paper's 40 images" in card


def test_the_shipped_net_on_the_whole_test_set_where_it_is_at_hand():
    try:
        table = zt.datasets.load_cifar10()
    except FileNotFoundError:
        pytest.skip("CIFAR-10 is not in its folder")
    folder = Path(zt.attack.__file__).parent / "nets"
    net = wrap(folder / "cifar10_small.onnx")
    x = stack(table.data.astype(np.float32) / 255 - 0.5, net, layout=None, bounds=None)
    right = (Universal(net, x, table.target).predictions(np.zeros(x.d)) == table.target).mean()
    assert right >= 0.78
    assert f"{100 * right:.2f} % of the 10,000 test images" in (folder / "README.md").read_text()


@pytest.mark.slow
def test_the_libraries_themselves_are_taken():
    torch, foolbox = pytest.importorskip("torch"), pytest.importorskip("foolbox")
    art = pytest.importorskip("art.estimators.classification")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(90, 4)).eval()
    x = images()
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    y = net(torch.from_numpy(first)).argmax(1).numpy()
    told = {"clip_values": (-0.5, 0.5), "input_shape": (3, 6, 5), "nb_classes": 4}
    classifier = art.PyTorchClassifier(net, loss=torch.nn.CrossEntropyLoss(), **told)
    plain = universal(net, x, y, k=3, budget=400, bounds=(-0.5, 0.5), seed=0)
    for model in (classifier, foolbox.PyTorchModel(net, bounds=(-0.5, 0.5), device="cpu")):
        assert np.array_equal(universal(model, x, y, k=3, budget=400, seed=0).theta, plain.theta)
    attack = zt.attack.ZeroThreshAttack(classifier, k=3, budget=400, seed=0)
    assert np.array_equal(attack.generate(first, y).transpose(0, 2, 3, 1), plain.images)


# The command, and the paper's experiment.


def command(*words):
    from typer.testing import CliRunner

    from zerothresh.cli import app

    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "150"})


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    table = zt.datasets.load_cifar10_paper("bird")
    path = tmp_path_factory.mktemp("birds") / "x.npz"
    np.savez(path, images=table.data.astype(np.float32) / 255 - 0.5, labels=table.target)
    return path


NET = Path(zt.attack.__file__).parent / "nets" / "cifar10_small.onnx"


def test_the_command_attacks_a_net_and_writes_a_report(birds, tmp_path):
    import json

    done = command("attack", "--model", NET, "--images", birds, "-k", 20, "--budget", 900, "--out", tmp_path / "report")
    assert done.exit_code == 0, done.output
    assert "at most 20 pixels changed" in done.output
    told = json.loads((tmp_path / "report" / "attack.json").read_text())
    assert told["promises"] == {
        "at most 20 pixels changed": True,
        "values within [-0.5, 0.5]": True,
        "at most 900 queries": True,
    }
    assert told["queries"] <= 900
    assert told["fooled"] > 5
    page = (tmp_path / "report" / "index.html").read_text()
    assert "promise: at most 900 queries" in page
    with np.load(tmp_path / "report" / "attack.npz") as held, np.load(birds) as given:
        assert np.allclose(held["images"], np.clip(given["images"] + held["perturbation"], -0.5, 0.5), atol=1e-6)
        assert ((held["perturbation"] != 0).any(axis=2)).sum() <= 20
    again = command("attack", "--model", NET, "--images", birds, "-k", 5, "--budget", 100, "--out", tmp_path / "report")
    assert again.exit_code == 0


def test_the_command_refuses_what_cannot_be_attacked(birds, tmp_path):
    np.savez(tmp_path / "unlabelled.npz", images=np.zeros((2, 32, 32, 3)))
    np.savez(tmp_path / "bright.npz", images=np.full((2, 32, 32, 3), 255), labels=np.zeros(2, int))
    np.savez(tmp_path / "small.npz", images=np.zeros((2, 28, 28, 3)), labels=np.zeros(2, int))
    (tmp_path / "text.npz").write_text("nothing")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    for words, said in [
        (["--model", NET], "--model and --images go together"),
        (["--model", NET, "--images", tmp_path / "nowhere.npz"], "there is no file"),
        (["--model", NET, "--images", tmp_path / "text.npz"], "no .npz file of plain arrays"),
        (["--model", NET, "--images", tmp_path / "unlabelled.npz"], "has no labels: it holds images"),
        (["--model", NET, "--images", tmp_path / "bright.npz"], "outside of the value range [-0.5, 0.5]"),
        (["--model", NET, "--images", tmp_path / "small.npz"], "takes images of shape (3, 32, 32)"),
        (["--model", birds, "--images", birds], "no net that onnxruntime can read"),
        (["--model", NET, "--images", birds, "--out", tmp_path / "full"], "holds other files"),
        (["--model", NET, "--images", birds, "--attack", "nothing"], "method"),
    ]:
        done = command("attack", *words, *([] if "--out" in words else ["--out", tmp_path / "out"]))
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.split()), done.output
    assert (tmp_path / "full" / "file").read_text() == "mine"


def test_the_paper_attack_is_reported_with_pictures_labels_and_intervals(tmp_path, monkeypatch):
    import json

    from zerothresh.reproduce.cifar import experiment as attack
    from zerothresh.reproduce.cifar import report as attack_report
    from zerothresh.reproduce.live_display import Bar

    monkeypatch.setattr(attack, "ETAS", (0.05,))
    monkeypatch.setattr(attack, "BUDGET", 250)
    plan = attack.Plan(("dog",), 0, 1, {250: 2}, {}, None, True)
    bar = Bar("dog", plan.runs, plan.queries)
    of = attack.run(plan, "dog", jobs=1, folder=tmp_path, done=bar.done)
    assert (bar.count, bar.past) == (plan.runs, plan.queries)
    assert of.victims.right.tolist() == [True] * 5 + [False] + [True] * 4  # image 42, as the model card says
    assert not any(entry.score.fooled[5] for entry in of.entries)
    (tmp_path / "study.json").write_text("{}")  # as `prepare` leaves it
    found = attack_report.write(tmp_path, plan, [of], attack.identity(plan), 1.0)
    assert {verdict.name for verdict in found} == {"reduced", "saga", "best"}
    page = (tmp_path / "index.html").read_text()
    for word in ("attack-dog-pictures.png", "attack-dog-curves.png", "SARAH-SZHT", "p-SAGA-SZHT", "the paper&#x27;s"):
        assert word in page
    listed = json.loads((tmp_path / "manifest.json").read_text())["files"]
    assert set(listed) <= {path.name for path in tmp_path.iterdir()}
    rows = (tmp_path / "attack-dog-care.csv").read_text().splitlines()
    assert len(rows) == 1 + len(attack.LABELS)
    again = attack.run(plan, "dog", jobs=1, folder=tmp_path)  # from what was kept
    assert np.array_equal(again.entry("best").score.theta, of.entry("best").score.theta)


def test_all_images_of_a_class_are_attacked_where_the_data_set_is_at_hand(tmp_path, monkeypatch):
    from zerothresh.reproduce.cifar import experiment as attack
    from zerothresh.reproduce.cifar import report as attack_report

    loaded = []

    def load(path, *, split="test"):  # the paper's images stand for the whole data set
        loaded.append((path, split))
        return zt.datasets.load_cifar10_paper()

    monkeypatch.setattr(attack, "load_cifar10", load)
    monkeypatch.setattr(attack, "ETAS", (0.05,))
    monkeypatch.setattr(attack, "BUDGET", 250)
    plan = attack.Plan(("dog",), 0, 1, {250: 2}, {300: 2}, tmp_path, False)
    of = attack.run(plan, "dog", jobs=1, folder=None)
    assert {split for _, split in loaded} == {"test", "train"}
    assert of.victims.others.n == 0  # the ten are all that there is
    assert (of.crowd.stack.n, of.crowd.others.n) == (9, 9)
    assert 42 not in of.crowd.ids
    table = attack_report.for_all(of)
    assert len(table.rows) == len(attack.LABELS)
    assert "All 9 test images" in table.note
    for entry in of.entries:
        assert [score.rate for score in entry.crowd[300]] == [score.transfer for score in entry.crowd[300]]
    (tmp_path / "study.json").write_text("{}")
    attack_report.write(tmp_path, plan, [of], attack.identity(plan), 1.0)
    assert (tmp_path / "attack-dog-all.csv").exists()
    assert "all of dog, 300 queries" in (tmp_path / "index.html").read_text()


def test_the_labels_of_the_paper_are_there_and_its_bold_ones_that_are_right_do_not_count():
    from zerothresh.reproduce.cifar.experiment import PRINTED
    from zerothresh.reproduce.cifar.report import _printed

    assert all(len(row.split()) == 10 for rows in PRINTED.values() for row in rows.values())
    assert _printed("airplane", "SARAH-SZHT")[0] == "6 of 10"  # the text says 7
    assert _printed("bird", "FGZOHT")[0] == "6 of 10"
    assert _printed("dog", "best") == ("-", "-")


def test_the_command_knows_the_classes_of_the_paper(tmp_path):
    for words, said in [
        (["--class", "cat"], "there is no class 'cat'"),
        (["--budget", "100"], "leave --budget out"),
        (["--class", "dog", "--quick", "--cifar10", tmp_path / "nowhere"], "holds no CIFAR-10"),
    ]:
        done = command("reproduce", "attack", *words, "--out", tmp_path / "out")
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.split())
