from __future__ import annotations

import numpy as np
import pytest
from attack_victims import NET, images, victims

from zerothresh.attack import Classifier, Universal, universal, wrap
from zerothresh.attack.images import stack_images


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


def test_an_attacked_image_is_the_sum_clipped():
    model, x, y = victims()
    classifier = wrap(model, bounds=(-0.5, 0.5))
    held = stack_images(x, classifier, layout=None, bounds=(-0.5, 0.5))
    problem = Universal(classifier, held, y)
    points = np.random.default_rng(0).normal(size=(5, held.d))
    of = np.array([3, 0, 3, 7, 1])
    wanted = np.clip((held.flat[of] + points).astype(np.float32), -0.5, 0.5)
    assert np.array_equal(problem.attacked(points, of).reshape(5, -1), wanted)
    one = np.clip((held.flat[of] + points[:1]).astype(np.float32), -0.5, 0.5)
    assert np.array_equal(problem.attacked(points[:1], of).reshape(5, -1), one)


BAD = [
    ({"images": images() * 3}, "values from -1.49.* outside of the value range"),
    ({"images": images(4).astype(complex)}, "must be an array of numbers"),
    ({"images": images(0)}, "at least one image"),
    ({"images": np.full((2, 6, 5, 3), np.nan)}, "image 0 contains a value that is not finite"),
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
    ({"budget": 24}, "budget = 24 is too small: 12 queries are set aside for the evaluation of the 12 images before"),
    ({"granularity": "patch"}, "granularity"),
    ({"bounds": (1, 0)}, "bounds must be the value range of a pixel"),
    ({"bounds": None, "images": images() * 1e4}, "no common value range: pass bounds"),
    ({"bounds": 3}, "bounds must be the value range of a pixel"),
    ({"bounds": (0, 1, 2)}, "bounds must be the value range of a pixel"),
    ({"bounds": (0, 1e300)}, "both within the range of float32"),
    ({"bounds": (0, 1e-60)}, "low below high and both within the range of float32"),
    ({"images": [[1], [2, 3]]}, "images cannot be made an array of one shape"),
    ({"images": images()[:, :0]}, "at least one image of at least one pixel"),
    ({"labels": [[1], [2, 3]]}, "labels cannot be made an array of one shape"),
    ({"labels": np.array([["a", "b"]] * 12)}, "labels must be 12 whole numbers"),
    ({"targeted": [[1], [2, 3]]}, "targeted cannot be made an array of one shape"),
    ({"scores": "points"}, "scores must be one of 'logits'"),
    ({"run": 5}, "run must be the path of a folder, not 5"),
    ({"chunk": "abc"}, "chunk must be"),
    ({"workers": "abc"}, "workers must be"),
    ({"timeout": -1}, "timeout must be"),
    ({"retries": 1.5}, "retries must be"),
    ({"max_time": 0}, "max_time must be"),
    ({"progress": "no"}, "progress must be True or False"),
    ({"cost": lambda i: -1}, "cost"),
    ({"fsync": "always"}, "fsync must be one of"),
    ({"include": [0]}, "include"),
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
    assert model.seen == 0 or "the classifier has classes 0 to 3" in words or "targeted name class" in words


@pytest.mark.parametrize("name", ["groups", "method", "n", "vectorized", "nothing"])
def test_arguments_that_an_attack_does_not_take_are_refused_before_the_first_query(name):
    model, x, y = victims()
    with pytest.raises(TypeError, match=f"an attack takes no argument '{name}'; beside its own, it takes these"):
        universal(model, x, y, k=2, budget=200, bounds=(-0.5, 0.5), **{name: None})
    assert model.seen == 0


def test_a_net_with_another_input_size_is_refused():
    net = wrap(NET)
    with pytest.raises(
        ValueError, match=r"takes images of shape \(3, 32, 32\) \(NCHW\), but these have shape \(28, 28, 3\)"
    ):
        universal(net, np.zeros((2, 28, 28, 3)), [0, 0], k=1, budget=100)
    flat = Classifier(lambda images: images[:, :2], bounds=(0, 1), shape=(64,), layout="flat", name="flat")
    with pytest.raises(ValueError, match=r"flat takes 64 numbers per image, but these have shape \(9, 9\)"):
        universal(flat, np.zeros((2, 9, 9)), [0, 0], k=1, budget=100)


def test_a_value_range_that_nobody_said_is_guessed_with_a_warning():
    model, x, y = victims()
    with pytest.warns(UserWarning, match=r"suggest \[-0.5, 0.5\], which is used"):
        found = universal(model, x, y, k=1, budget=100, seed=0)
    assert not found.stack.bounds_declared
