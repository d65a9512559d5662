"""Train the small network that the package contains, and write it as an ONNX file with its model card.

    pip install -e '.[attack]' 'torch==2.13.0' onnx
    python scripts/train_cifar_net.py --cifar10 <archive or folder> [--epochs 12] [--seed 0] [--out <folder>]

The architecture is a narrower version of Carlini's small convolutional network: two pairs of 3 x 3 convolutions, each
pair followed by max pooling over 2 x 2, and two hidden layers. Batch normalisation is used during training and folded
into the weights afterwards. Input: images of shape (batch, 3, 32, 32) with values in [-0.5, 0.5]. Output:
log-probabilities.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

import zerothresh as zt

OUT = Path(__file__).parents[1] / "src" / "zerothresh" / "attack" / "nets"
WIDTH, HIDDEN, BATCH = (16, 48), 64, 250


def convolution(inputs: int, outputs: int) -> list[nn.Module]:
    """Return the layers of a 3 x 3 convolution without padding, batch normalisation and ReLU."""
    return [nn.Conv2d(inputs, outputs, 3, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def dense(inputs: int, outputs: int) -> list[nn.Module]:
    """Return the layers of a hidden layer, batch normalisation and ReLU."""
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]


def build() -> nn.Sequential:
    """Build the network, with its batch normalisation."""
    a, b = WIDTH
    return nn.Sequential(
        *convolution(3, a),
        *convolution(a, a),
        nn.MaxPool2d(2),
        *convolution(a, b),
        *convolution(b, b),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *dense(b * 25, HIDDEN),
        *dense(HIDDEN, HIDDEN),
        nn.Linear(HIDDEN, 10),
    )


def tensors(path: str, split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Load the images of a split, (n, 3, 32, 32) with values in [-0.5, 0.5], and their labels, (n,)."""
    table = zt.datasets.load_cifar10(path, split=split)
    images = torch.from_numpy(table.data.transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5)
    return images.contiguous(), torch.from_numpy(table.target)


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shift each image by up to 3 pixels, and flip it with probability 1/2."""
    count = len(images)
    flipped = torch.where(torch.rand(count, 1, 1, 1, generator=generator) < 0.5, images.flip(3), images)
    padded = functional.pad(flipped, (3, 3, 3, 3), mode="reflect")
    rows = torch.randint(0, 7, (count, 1), generator=generator) + torch.arange(32)
    columns = torch.randint(0, 7, (count, 1), generator=generator) + torch.arange(32)
    which = torch.arange(count)[:, None, None]
    shifted = padded.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return shifted.contiguous(memory_format=torch.channels_last)  # the faster memory layout on a CPU


@torch.inference_mode()
def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the share of images that are classified correctly."""
    net.eval()
    guessed = torch.cat([net(some).argmax(1) for some in images.split(1000)])
    return float((guessed == labels).float().mean())


def train(net: nn.Sequential, path: str, epochs: int, seed: int) -> float:
    """Train by AdamW with a one-cycle learning rate and label smoothing; return the accuracy on the test set."""
    images, labels = tensors(path, "train")
    test_images, test_labels = tensors(path, "test")
    generator = torch.Generator().manual_seed(seed)
    steps = len(images) // BATCH * epochs
    optimiser = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=8e-3, total_steps=steps, pct_start=0.25)
    began = time.perf_counter()
    score = 0.0
    for epoch in range(1, epochs + 1):
        net.train()
        for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
            scores = net(augment(images[chosen], generator))
            loss = functional.cross_entropy(scores, labels[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        score = accuracy(net, test_images, test_labels)
        seconds = time.perf_counter() - began
        print(f"epoch {epoch}/{epochs}: {100 * score:.2f} % of the test set, {seconds:.0f} s", flush=True)
    return score


def folded(layer: nn.Conv2d | nn.Linear, norm: nn.Module | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and biases of a layer with the batch normalisation that follows it folded in."""
    weight = layer.weight.detach().double()
    if not isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
        assert layer.bias is not None
        return weight.float().numpy(), layer.bias.detach().numpy()
    factor = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
    bias = norm.bias.detach().double() - norm.running_mean.double() * factor
    return (weight * factor.reshape(-1, *[1] * (weight.ndim - 1))).float().numpy(), bias.float().numpy()


def to_onnx(net: nn.Sequential) -> onnx.ModelProto:
    """Convert the network to an ONNX graph of convolutions, ReLU, max pooling, matrix products and log-softmax."""
    nodes, weights, last = [], [], "images"
    layers = [*net, None]
    for number, (layer, norm) in enumerate(pairwise(layers)):
        name = f"layer{number}"
        if isinstance(layer, nn.Conv2d | nn.Linear):
            for part, array in zip(("weight", "bias"), folded(layer, norm), strict=True):
                weights.append(numpy_helper.from_array(array, f"{name}.{part}"))
            inputs = [last, f"{name}.weight", f"{name}.bias"]
            kind, options = ("Conv", {}) if isinstance(layer, nn.Conv2d) else ("Gemm", {"transB": 1})
        elif isinstance(layer, nn.MaxPool2d):
            inputs, kind, options = [last], "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}
        elif isinstance(layer, nn.ReLU | nn.Flatten):
            inputs, kind, options = [last], {nn.ReLU: "Relu", nn.Flatten: "Flatten"}[type(layer)], {}
        else:
            continue
        nodes.append(helper.make_node(kind, inputs, [name], **options))
        last = name
    nodes.append(helper.make_node("LogSoftmax", [last], ["log_probabilities"], axis=1))
    graph_input = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 32, 32])
    graph_output = helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes, "zerothresh-cifar10-small", [graph_input], [graph_output], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="zerothresh")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


CARD = """# Model card: cifar10-small

A small convolutional network for CIFAR-10, made to be attacked. `scripts/train_cifar_net.py` trains it.

| | |
|---|---|
| architecture | 3 x 3 convolutions without padding {a}-{a}, max pooling 2 x 2, {b}-{b}, max pooling 2 x 2, dense {h}-{h}-10, ReLU; batch normalisation during training, folded into the weights |
| parameters | {parameters:,} (float32) |
| input | `images`: (batch, 3, 32, 32), values in [-0.5, 0.5] |
| output | `log_probabilities`: (batch, 10), of {classes} |
| data | the 50,000 training images of CIFAR-10, with random flips and shifts by up to 3 pixels |
| training | AdamW, one-cycle learning rate up to 0.008, batches of {batch}, label smoothing 0.05, {epochs} epochs, seed {seed}, PyTorch {torch}: {minutes:.0f} minutes on {threads} threads |
| test accuracy | {accuracy:.2f} % of the 10,000 test images; {paper} of the paper's 40 images |
| the paper's images that it classifies wrongly | {wrong} |
| intended use | demonstrating and measuring attacks. Its accuracy is low: do not use it as a classifier |
| licence | BSD-3-Clause, like the rest of the package |

The weights are those of the last epoch, whatever their accuracy: the test set was not used to choose them.
"""  # noqa: E501


def main() -> None:
    """Train the network, write it, and report the accuracy that onnxruntime measures."""
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10", required=True, help="an archive or a folder that load_cifar10 can read")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the training images; 12 by default")
    parser.add_argument("--seed", type=int, default=0, help="the seed of PyTorch; 0 by default")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch; 2 by default")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder for both files; the package by default")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    began = time.perf_counter()
    net = build().to(memory_format=torch.channels_last)
    train(net, arguments.cifar10, arguments.epochs, arguments.seed)
    minutes = (time.perf_counter() - began) / 60
    net.eval()
    model = to_onnx(net)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    images, labels = tensors(arguments.cifar10, "test")
    scores = np.concatenate([session.run(None, {"images": some.numpy()})[0] for some in images.split(1000)])
    predicted = scores.argmax(1)
    right = predicted == labels.numpy()
    ids = [(name, one) for name, some in zt.datasets.cifar10.PAPER_IDS.items() for one in some]
    wrong = [f"{name} {one} ({zt.datasets.cifar10.CLASSES[predicted[one]]})" for name, one in ids if not right[one]]
    facts = {
        "a": WIDTH[0],
        "b": WIDTH[1],
        "h": HIDDEN,
        "parameters": sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer),
        "classes": ", ".join(zt.datasets.cifar10.CLASSES),
        "batch": BATCH,
        "epochs": arguments.epochs,
        "seed": arguments.seed,
        "torch": torch.__version__.split("+")[0],
        "minutes": minutes,
        "threads": arguments.threads,
        "accuracy": 100 * right.mean(),
        "paper": len(ids) - len(wrong),
        "wrong": ", ".join(wrong) or "none",
    }
    # What `zerothresh attack` has to know about a network: its value range, the kind of its scores, and the classes.
    classes = ",".join(zt.datasets.cifar10.CLASSES)
    helper.set_model_props(model, {"bounds": "-0.5 0.5", "scores": "log-probabilities", "classes": classes})
    arguments.out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, arguments.out / "cifar10_small.onnx")
    (arguments.out / "README.md").write_text(CARD.format(**facts), encoding="utf-8")
    print(CARD.format(**facts))


if __name__ == "__main__":
    main()
