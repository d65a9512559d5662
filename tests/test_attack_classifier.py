"""Models of other libraries, which are recognised by the module of their class; most of them need not be installed."""

from __future__ import annotations

import os
import pickle
import sys
import types

import numpy as np
import pytest
from attack_victims import NET, images, victims

import zerothresh as zt
from zerothresh.attack import Classifier, FewPixel, Universal, universal, wrap
from zerothresh.attack.images import stack_images
from zerothresh.datasets import cifar10


def test_an_estimator_of_scikit_learn_is_taken():
    classifier, x, y = zt.attack.digits(3)
    assert (classifier.bounds, classifier.scores, classifier.layout) == ((0.0, 16.0), "probabilities", "flat")
    found = universal(classifier, x, y, k=3, budget=2500, seed=0)
    assert found.right.mean() > 0.8
    assert found.success_rate > 0.9
    assert all(found.promises().values())
    alike = {"k": 3, "budget": 500, "seed": 0, "attack": FewPixel()}  # flat images have no neighbours: nor here
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


def test_an_estimator_without_probabilities_is_taken():
    from sklearn.linear_model import RidgeClassifier

    x = images()
    y = (x.mean(axis=(1, 2, 3)) > 0).astype(int)
    with pytest.raises(ValueError, match="has not been fitted"):
        wrap(RidgeClassifier())
    made = wrap(RidgeClassifier().fit(x.reshape(12, -1), y), bounds=(-0.5, 0.5))
    assert made(x).shape == (12, 2)
    assert made.scores == "logits"


def test_a_file_that_is_no_net_is_refused(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is not a net that onnxruntime can read"):
        wrap(tmp_path / "net.onnx")


def test_a_net_of_a_fixed_batch_is_given_whole_batches():
    from zerothresh.attack.adapters import OnnxNet

    asked = []

    def run(_, feed):
        asked.append(feed["images"].shape)
        return [feed["images"].reshape(8, -1)[:, :4]]

    net = object.__new__(OnnxNet)
    net.dtype, net.input = np.float32, types.SimpleNamespace(name="images", shape=[8, 6, 5, 3])
    net.session = types.SimpleNamespace(run=run)
    x = images(11)
    made = Classifier(net, bounds=(-0.5, 0.5), batch=8)
    assert np.array_equal(made(x).argmax(axis=1), x.reshape(11, -1)[:, :4].argmax(axis=1))
    assert asked == [(8, 6, 5, 3)] * 2
    assert made.queries == 11


def test_two_files_of_one_name_are_two_nets(tmp_path):
    shipped = NET.read_bytes()
    assert b"automobile" in shipped  # a text of the file, which does not matter to the net
    for folder, content in (("a", shipped), ("b", shipped.replace(b"automobile", b"autombbile"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.onnx").write_bytes(content)
    one, two = wrap(tmp_path / "a" / "net.onnx"), wrap(tmp_path / "b" / "net.onnx")
    held = stack_images(np.zeros((1, 3, 32, 32)), one, layout=None, bounds=None)
    prints = [Universal(net, held, np.array([0])).fingerprint for net in (one, two, wrap(tmp_path / "a" / "net.onnx"))]
    assert prints[0] == prints[2] != prints[1]


@pytest.mark.parametrize("bounds", ["-0.5 x.5", "-0.5    ", "0.50 0.5", "nan  inf"])
def test_a_net_that_says_nonsense_of_itself_is_refused(bounds, tmp_path):
    shipped = NET.read_bytes()
    assert shipped.count(b"-0.5 0.5") == 1
    (tmp_path / "net.onnx").write_bytes(shipped.replace(b"-0.5 0.5", bounds.encode()))
    with pytest.raises(ValueError, match=r"net.onnx says of itself what cannot be: bounds must be the value range"):
        wrap(tmp_path / "net.onnx")


def test_a_file_that_is_no_net_is_refused_and_no_pipe_is_waited_for(tmp_path):
    (tmp_path / "cut.onnx").write_bytes(NET.read_bytes()[:1000])
    (tmp_path / "empty.onnx").touch()
    os.mkfifo(tmp_path / "pipe.onnx")
    for name in ("cut.onnx", "empty.onnx", "pipe.onnx", ".", "nowhere.onnx", "x" * 300):
        with pytest.raises(
            ValueError, match=r"is not a net that onnxruntime can read|there is no file|cannot be read|input"
        ):
            wrap(tmp_path / name)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"predict": 5}, "predict must be a function"),
        ({"bounds": "ab"}, "bounds must be the value range"),
        ({"shape": 5}, "shape must be that of one image"),
        ({"shape": (3, 0)}, "each number of shape"),
        ({"layout": "HWC"}, "layout must be one of"),
        ({"scores": "votes"}, "scores must be one of"),
        ({"classes": "ab"}, "classes must be the names of the classes"),
        ({"classes": [1, 2]}, "classes must be the names of the classes"),
        ({"name": 5}, "name must be a string"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"codes": np.eye(2)}, "codes must be one label per class"),
    ],
)
def test_a_classifier_that_cannot_be_is_refused(declared, words):
    with pytest.raises(ValueError, match=words):
        Classifier(**{"predict": len, **declared})
    if "predict" not in declared:
        with pytest.raises(ValueError, match=words):
            wrap(len, **declared)


def test_what_no_classifier_has_cannot_be_declared():
    with pytest.raises(ValueError, match=r"what is declared of a classifier must be one of .*; did you mean 'bounds'"):
        wrap(len, bound=(0, 1))


def test_a_classifier_can_be_sent_to_another_process():
    net = wrap(NET)
    x = zt.datasets.load_cifar10_paper("ship").data.transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5
    assert np.array_equal(pickle.loads(pickle.dumps(net))(x), net(x))  # noqa: S301


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
    monkeypatch.delitem(sys.modules, "zerothresh.attack.art_attack", raising=False)
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
    sys.modules.pop("zerothresh.attack.art_attack", None)
    with pytest.raises(AttributeError, match="has no attribute 'Attack'"):
        zt.attack.Attack


def test_the_attack_of_art_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "art", None)
    monkeypatch.delitem(sys.modules, "zerothresh.attack.art_attack", raising=False)
    with pytest.raises(ImportError, match="pip install adversarial-robustness-toolbox"):
        zt.attack.ZeroThreshAttack(None)
    sys.modules.pop("zerothresh.attack.art_attack", None)


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


def test_the_shipped_net_is_as_good_as_its_card_says():
    card = (NET.parent / "README.md").read_text()
    assert NET.stat().st_size < 1_000_000
    net = wrap(NET)
    assert (net.bounds, net.scores, net.classes) == ((-0.5, 0.5), "log-probabilities", cifar10.CLASSES)
    table = zt.datasets.load_cifar10_paper()
    x = stack_images(table.data.astype(np.float32) / 255 - 0.5, net, layout=None, bounds=None)
    right = int((Universal(net, x, table.target).predictions(np.zeros(x.d)) == table.target).sum())
    assert f"; {right} of the paper's 40 images" in card


def test_the_shipped_net_on_the_whole_test_set_where_it_is_at_hand():
    try:
        table = zt.datasets.load_cifar10()
    except FileNotFoundError:
        pytest.skip("CIFAR-10 is not in its folder")
    net = wrap(NET)
    x = stack_images(table.data.astype(np.float32) / 255 - 0.5, net, layout=None, bounds=None)
    right = (Universal(net, x, table.target).predictions(np.zeros(x.d)) == table.target).mean()
    assert right >= 0.78
    assert f"{100 * right:.2f} % of the 10,000 test images" in (NET.parent / "README.md").read_text()
