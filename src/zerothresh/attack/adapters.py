"""Models of other libraries as classifiers; each adapter takes over the value range where the library knows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.attack.classifier import Classifier, Images

_CHANNELS = (1, 3, 4)  # numbers of channels that images usually have


class OnnxNet:
    """A net in an ONNX file, run by onnxruntime; in another process, the file is opened again.

    Arguments
    ---------
    path: of the file.
    threads: threads that onnxruntime may use for one call.
    """

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
        except Exception as error:  # onnxruntime's own, from a module without a public name
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ValueError(f"{self.path} is not a net that onnxruntime can read: {reason}") from None
        inputs = self.session.get_inputs()
        if len(inputs) != 1:
            raise ValueError(f"{self.path} takes {len(inputs)} inputs; a classifier takes one, a batch of images")
        self.input = inputs[0]
        self.dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}.get(self.input.type)

    def __call__(self, images: Images) -> Any:
        count, fixed = len(images), self.input.shape[0]
        if isinstance(fixed, int) and count < fixed:  # the net takes batches of one size only: fill this one up
            images = np.concatenate([images, np.repeat(images[-1:], fixed - count, axis=0)])
        return self.session.run(None, {self.input.name: images.astype(self.dtype, copy=False)})[0][:count]

    def __getstate__(self) -> tuple[Path, int]:
        return self.path, self.threads

    def __setstate__(self, state: tuple[Path, int]) -> None:
        self.path, self.threads = state
        self._open()


def from_onnx(path: Path, *, threads: int = 1) -> Classifier:
    """A net in an ONNX file.

    The metadata of the file may declare what the net itself does not: ``bounds`` ("-0.5 0.5"), ``scores`` and
    ``classes`` ("cat,dog").
    """
    try:
        if not path.is_file():
            raise ValueError(f"there is no file {path}: name the ONNX file of a net")
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): name the ONNX file of a net") from None
    net = OnnxNet(path, threads)
    if net.dtype is None:
        raise ValueError(f"{path} takes {net.input.type}; a classifier takes float or double")
    if len(net.input.shape) < 2:
        raise ValueError(f"{path} takes an array of shape {net.input.shape}; a classifier takes a batch of images")
    count, *sizes = net.input.shape
    shape = tuple(sizes) if all(isinstance(size, int) for size in sizes) else None
    metadata = net.session.get_modelmeta().custom_metadata_map
    try:
        return Classifier(
            net,
            bounds=_bounds_in(metadata),
            shape=shape,
            layout=layout_of(shape) if shape is not None else _layout_by_channels(sizes),
            scores=metadata.get("scores"),
            classes=tuple(metadata["classes"].split(",")) if "classes" in metadata else None,
            name=path.name,
            mark=hashlib.blake2b(content, digest_size=8).hexdigest(),
            batch=count if isinstance(count, int) else 256,
        )
    except ValueError as error:
        raise ValueError(f"{path} says of itself what cannot be: {error}") from None


def _bounds_in(metadata: Mapping[str, str]) -> Any:
    """The value range that the metadata of an ONNX file declare, as numbers; None if they declare none."""
    if "bounds" not in metadata:
        return None
    try:
        return tuple(float(word) for word in metadata["bounds"].split())
    except ValueError:
        return metadata["bounds"]  # which is no value range, and is refused as one


def from_torch(module: Any, *, bounds: tuple[float, float] | None = None) -> Classifier:
    """A torch module that takes images with channels first; its value range has to be declared."""
    import torch as pytorch

    first = next(iter(module.parameters()), None)
    module.eval()

    def predict(images: Images) -> Any:
        with pytorch.inference_mode():
            batch = pytorch.from_numpy(np.ascontiguousarray(images))
            return module(batch if first is None else batch.to(first)).float().cpu().numpy()

    return Classifier(predict, bounds=bounds, layout="NCHW", name=type(module).__name__)


def from_sklearn(estimator: Any, *, bounds: tuple[float, float] | None = None) -> Classifier:
    """A scikit-learn classifier of flat images; its probabilities, or else its decision function, are the scores."""
    size = getattr(estimator, "n_features_in_", None)
    if size is None:
        raise ValueError(f"{type(estimator).__name__} has not been fitted: call fit first")
    codes = np.asarray(getattr(estimator, "classes_", ()))
    classes = tuple(str(name) for name in codes)
    one_vs_one = getattr(estimator, "decision_function_shape", "ovr") == "ovo" and codes.size > 2
    if one_vs_one and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} gives one score per pair of classes: make it with "
            "decision_function_shape='ovr'"
        )
    plain = codes.dtype.kind in "iu" and np.array_equal(codes, np.arange(codes.size))

    def predict(images: Images) -> Any:
        flat = images.reshape(len(images), -1)
        if hasattr(estimator, "predict_proba"):
            return estimator.predict_proba(flat)
        decision = np.asarray(estimator.decision_function(flat))
        return np.stack([-decision, decision], axis=1) if decision.ndim == 1 else decision

    return Classifier(
        predict,
        bounds=bounds,
        shape=(int(size),),
        layout="flat",
        scores="probabilities" if hasattr(estimator, "predict_proba") else "logits",
        classes=classes or None,
        name=type(estimator).__name__,
        codes=None if plain or not codes.size else codes,
    )


def from_art(estimator: Any) -> Classifier:
    """A classifier of the Adversarial Robustness Toolbox, whose ``clip_values`` are its value range."""
    clip = estimator.clip_values
    if clip is not None and any(np.ptp(end) > 0 for end in clip):
        raise ValueError("clip_values differ between pixels or channels, but an attack needs one value range for all")
    shape = tuple(int(size) for size in estimator.input_shape)
    channels_first = getattr(estimator, "channels_first", False)
    return Classifier(
        estimator.predict,
        bounds=None if clip is None else (float(np.min(clip[0])), float(np.max(clip[1]))),
        shape=shape,
        layout=("NCHW" if channels_first else "NHWC") if len(shape) == 3 else layout_of(shape),
        name=type(estimator).__name__,
    )


def from_foolbox(model: Any) -> Classifier:
    """A foolbox model of torch or of NumPy, whose ``bounds`` are its value range."""
    bounds = (float(model.bounds.lower), float(model.bounds.upper))
    name = type(model).__name__
    if name not in ("PyTorchModel", "NumPyModel"):
        raise ValueError(
            f"of the foolbox models, PyTorchModel and NumPyModel are supported, not {name}: pass a callable instead"
        )

    def predict(images: Images) -> Any:
        if name == "NumPyModel":
            return model(images)
        import torch as pytorch

        with pytorch.inference_mode():
            return model(pytorch.from_numpy(np.ascontiguousarray(images)).to(model.device)).cpu().numpy()

    layout = "NCHW" if name == "PyTorchModel" or getattr(model, "data_format", "") == "channels_first" else None
    return Classifier(predict, bounds=bounds, layout=layout, name=name)


def _layout_by_channels(sizes: Sequence[Any]) -> str | None:
    """The layout of images with any number of rows and columns, recognised by the end that may be channels.

    >>> _layout_by_channels([3, "h", "w"]), _layout_by_channels([None, None, 1]), _layout_by_channels(["a", "b", "c"])
    ('NCHW', 'NHWC', None)
    """
    if len(sizes) != 3:
        return None
    first, last = (size in _CHANNELS for size in (sizes[0], sizes[2]))
    return None if first == last else "NCHW" if first else "NHWC"


def layout_of(shape: tuple[int, ...] | None) -> str | None:
    """The layout of an image of a given shape, if it can be recognised: channels are 1, 3 or 4.

    >>> layout_of((3, 32, 32)), layout_of((28, 28, 1)), layout_of((64,)), layout_of((3, 32, 3))
    ('NCHW', 'NHWC', 'flat', None)
    """
    if shape is None or len(shape) not in (1, 2, 3):
        return None
    return {1: "flat", 2: "HW"}.get(len(shape)) or _layout_by_channels(shape)
