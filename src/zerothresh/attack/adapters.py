"""Models of other libraries as classifiers: each adapter says its value range, where the library knows it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.attack.classifier import Classifier, Images


class OnnxNet:
    """A net in an ONNX file, run by onnxruntime; sent to another process, it is opened there again."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path, self.threads = path, threads
        self._open()

    def _open(self) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ImportError("a net in an ONNX file needs onnxruntime: pip install 'zerothresh[attack]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = self.threads
        try:
            self.session = onnxruntime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own, in a module without a public name
            words = str(error).splitlines()[0]
            raise ValueError(f"{self.path} is no net that onnxruntime can read: {words}") from None
        self.given = self.session.get_inputs()[0]
        self.wanted = {"tensor(float)": np.float32, "tensor(double)": np.float64}.get(self.given.type)

    def __call__(self, images: Images) -> Any:
        count, whole = len(images), self.given.shape[0]
        if isinstance(whole, int) and count < whole:  # a net that takes so many images at once, no more and no fewer
            images = np.concatenate([images, np.repeat(images[-1:], whole - count, axis=0)])
        return self.session.run(None, {self.given.name: images.astype(self.wanted, copy=False)})[0][:count]

    def __getstate__(self) -> tuple[Path, int]:
        return self.path, self.threads

    def __setstate__(self, state: tuple[Path, int]) -> None:
        self.path, self.threads = state
        self._open()


def from_onnx(path: Path, *, threads: int = 1) -> Classifier:
    """A net in an ONNX file.

    The metadata of the file may say what the net cannot: ``bounds`` ("-0.5 0.5"), ``scores`` and
    ``classes`` ("cat,dog").
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    net = OnnxNet(path, threads)
    inputs = net.session.get_inputs()
    if len(inputs) > 1:
        raise ValueError(f"{path} takes {len(inputs)} inputs; a classifier takes one, a batch of images")
    if net.wanted is None:
        raise ValueError(f"{path} takes {net.given.type}; a classifier takes float or double")
    count, *sizes = net.given.shape
    shape = tuple(sizes) if all(isinstance(size, int) for size in sizes) else None
    facts = net.session.get_modelmeta().custom_metadata_map
    bounds = tuple(float(word) for word in facts["bounds"].split()) if "bounds" in facts else None
    return Classifier(
        net,
        bounds=None if bounds is None else (bounds[0], bounds[1]),
        shape=shape,
        layout=layout_of(shape) if shape is not None else _told_by_channels(sizes),
        scores=facts.get("scores"),
        classes=tuple(facts["classes"].split(",")) if "classes" in facts else None,
        name=path.name,
        mark=hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest(),
        batch=count if isinstance(count, int) else 256,
    )


def from_torch(module: Any, *, bounds: tuple[float, float] | None = None) -> Classifier:
    """A torch module, images channels first; its value range has to be declared."""
    import torch as pytorch

    first = next(iter(module.parameters()), None)
    module.eval()

    def predict(images: Images) -> Any:
        with pytorch.inference_mode():
            batch = pytorch.from_numpy(np.ascontiguousarray(images))
            return module(batch if first is None else batch.to(first)).float().cpu().numpy()

    return Classifier(predict, bounds=bounds, layout="NCHW", name=type(module).__name__)


def from_sklearn(estimator: Any, *, bounds: tuple[float, float] | None = None) -> Classifier:
    """A scikit-learn classifier, images flat; probabilities if it gives them, else its decision function."""
    size = getattr(estimator, "n_features_in_", None)
    if size is None:
        raise ValueError(f"{type(estimator).__name__} has not been fitted: call fit first")
    codes = np.asarray(getattr(estimator, "classes_", ()))
    classes = tuple(str(name) for name in codes)
    pairs = getattr(estimator, "decision_function_shape", "ovr") == "ovo" and codes.size > 2
    if pairs and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} gives a score a pair of classes: make it with decision_function_shape='ovr'"
        )
    plain = codes.dtype.kind in "iu" and np.array_equal(codes, np.arange(codes.size))

    def predict(images: Images) -> Any:
        flat = images.reshape(len(images), -1)
        if hasattr(estimator, "predict_proba"):
            return estimator.predict_proba(flat)
        told = np.asarray(estimator.decision_function(flat))
        return np.stack([-told, told], axis=1) if told.ndim == 1 else told

    kind = "probabilities" if hasattr(estimator, "predict_proba") else "logits"
    name = type(estimator).__name__
    return Classifier(
        predict,
        bounds=bounds,
        shape=(int(size),),
        layout="flat",
        scores=kind,
        classes=classes or None,
        name=name,
        codes=None if plain or not codes.size else codes,
    )


def from_art(estimator: Any) -> Classifier:
    """A classifier of the Adversarial Robustness Toolbox: ``clip_values`` is its value range."""
    clip = estimator.clip_values
    if clip is not None and any(np.ptp(end) > 0 for end in clip):
        raise ValueError("clip_values differ from pixel to pixel or channel to channel: one value range is needed")
    shape = tuple(int(size) for size in estimator.input_shape)
    first = getattr(estimator, "channels_first", False)
    return Classifier(
        estimator.predict,
        bounds=None if clip is None else (float(np.min(clip[0])), float(np.max(clip[1]))),
        shape=shape,
        layout=("NCHW" if first else "NHWC") if len(shape) == 3 else layout_of(shape),
        name=type(estimator).__name__,
    )


def from_foolbox(model: Any) -> Classifier:
    """A foolbox model: ``bounds`` is its value range. Models of torch and of NumPy are taken."""
    bounds = (float(model.bounds.lower), float(model.bounds.upper))
    name = type(model).__name__
    if name not in ("PyTorchModel", "NumPyModel"):
        raise ValueError(f"of foolbox, PyTorchModel and NumPyModel are taken, not {name}: pass a callable instead")

    def predict(images: Images) -> Any:
        if name == "NumPyModel":
            return model(images)
        import torch as pytorch

        with pytorch.inference_mode():
            return model(pytorch.from_numpy(np.ascontiguousarray(images)).to(model.device)).cpu().numpy()

    layout = "NCHW" if name == "PyTorchModel" or getattr(model, "data_format", "") == "channels_first" else None
    return Classifier(predict, bounds=bounds, layout=layout, name=name)


def _told_by_channels(sizes: Sequence[Any]) -> str | None:
    """How an image is laid out whose rows and columns may be of any number: by the end that is fixed.

    >>> _told_by_channels([3, "h", "w"]), _told_by_channels([None, None, 1]), _told_by_channels(["a", "b", "c"])
    ('NCHW', 'NHWC', None)
    """
    if len(sizes) != 3:
        return None
    first, last = (size in (1, 3, 4) for size in (sizes[0], sizes[2]))
    return None if first == last else "NCHW" if first else "NHWC"


def layout_of(shape: tuple[int, ...] | None) -> str | None:
    """How an image of a shape is laid out, if that can be told: channels are 1, 3 or 4.

    >>> layout_of((3, 32, 32)), layout_of((28, 28, 1)), layout_of((64,)), layout_of((3, 32, 3))
    ('NCHW', 'NHWC', 'flat', None)
    """
    if shape is None or len(shape) not in (1, 2, 3):
        return None
    if len(shape) < 3:
        return {1: "flat", 2: "HW"}[len(shape)]
    first, last = (size in (1, 3, 4) for size in (shape[0], shape[2]))
    return None if first == last else "NCHW" if first else "NHWC"
