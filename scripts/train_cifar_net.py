"""Train the small net that comes with the package, and write it as ONNX with its model card.

    pip install -e '.[attack]' 'torch==2.13.0' onnx
    python scripts/train_cifar_net.py --cifar10 <archive or folder> [--epochs 12] [--seed 0] [--out <folder>]

The shape is that of Carlini's small convnet, narrower: two pairs of 3 x 3 convolutions, each followed by
a maximum over 2 x 2, and two hidden layers. Batch norm is there while training, and is folded into the
weights afterwards. Input: (images, 3, 32, 32), values in [-0.5, 0.5]. Output: log-probabilities.
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
    """3 x 3 without padding, batch norm, rectifier."""
    return [nn.Conv2d(inputs, outputs, 3, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def dense(inputs: int, outputs: int) -> list[nn.Module]:
    """A hidden layer, batch norm, rectifier."""
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]


def build() -> nn.Sequential:
    """The net, with its batch norms."""
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
    """Images in [-0.5, 0.5], channels first, and labels."""
    table = zt.datasets.load_cifar10(path, split=split)
    images = torch.from_numpy(table.data.transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5)
    return images.contiguous(), torch.from_numpy(table.target)


def augment(images: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
    """Each image shifted by up to 3 pixels, half of them flipped."""
    count = len(images)
    flipped = torch.where(torch.rand(count, 1, 1, 1, generator=chance) < 0.5, images.flip(3), images)
    padded = functional.pad(flipped, (3, 3, 3, 3), mode="reflect")
    rows = torch.randint(0, 7, (count, 1), generator=chance) + torch.arange(32)
    columns = torch.randint(0, 7, (count, 1), generator=chance) + torch.arange(32)
    which = torch.arange(count)[:, None, None]
    shifted = padded.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return shifted.contiguous(memory_format=torch.channels_last)  # the faster order on a processor


@torch.inference_mode()
def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images that are classified rightly."""
    net.eval()
    guessed = torch.cat([net(some).argmax(1) for some in images.split(1000)])
    return float((guessed == labels).float().mean())


def train(net: nn.Sequential, path: str, epochs: int, seed: int) -> float:
    """AdamW, one cycle of the learning rate, label smoothing; gives the accuracy on the test set."""
    images, labels = tensors(path, "train")
    test_images, test_labels = tensors(path, "test")
    chance = torch.Generator().manual_seed(seed)
    steps = len(images) // BATCH * epochs
    optimiser = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=8e-3, total_steps=steps, pct_start=0.25)
    began = time.perf_counter()
    score = 0.0
    for epoch in range(1, epochs + 1):
        net.train()
        for chosen in torch.randperm(len(images), generator=chance).split(BATCH):
            loss = functional.cross_entropy(net(augment(images[chosen], chance)), labels[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        score = accuracy(net, test_images, test_labels)
        seconds = time.perf_counter() - began
        print(f"epoch {epoch}/{epochs}: {100 * score:.2f} % of the test set, {seconds:.0f} s", flush=True)
    return score


def folded(layer: nn.Conv2d | nn.Linear, norm: nn.Module | None) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases with the batch norm that follows taken in."""
    weight = layer.weight.detach().double()
    if not isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
        assert layer.bias is not None
        return weight.float().numpy(), layer.bias.detach().numpy()
    factor = norm.weight.detach().double() / torch.sqrt(norm.running_var.double() + norm.eps)
    bias = norm.bias.detach().double() - norm.running_mean.double() * factor
    return (weight * factor.reshape(-1, *[1] * (weight.ndim - 1))).float().numpy(), bias.float().numpy()


def to_onnx(net: nn.Sequential) -> onnx.ModelProto:
    """The net as a plain graph: convolution, rectifier, maximum, product, logarithm of softmax."""
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
    given = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 32, 32])
    told = helper.make_tensor_value_info("log_probabilities", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes, "zerothresh-cifar10-small", [given], [told], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="zerothresh")
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


CARD = """# Model card: cifar10-small

A small convnet for CIFAR-10, made to be attacked. `scripts/train_cifar_net.py` trains it.

| | |
|---|---|
| architecture | 3 x 3 convolutions without padding {a}-{a}, maximum 2 x 2, {b}-{b}, maximum 2 x 2, dense {h}-{h}-10, rectifiers; batch norm while training, folded into the weights |
| parameters | {parameters:,} (float32) |
| input | `images`: (batch, 3, 32, 32), values in [-0.5, 0.5] |
| output | `log_probabilities`: (batch, 10), of {classes} |
| data | the 50,000 training images of CIFAR-10; flips, shifts by up to 3 pixels |
| training | AdamW, one cycle of the learning rate up to 0.008, batches of {batch}, label smoothing 0.05, {epochs} epochs, seed {seed}, PyTorch {torch}: {minutes:.0f} minutes on {threads} threads |
| test accuracy | {accuracy:.2f} % of the 10,000 test images; {paper} of the paper's 40 images |
| paper's images that it gets wrong | {wrong} |
| meant for | showing and measuring attacks. It is no good classifier: do not use it as one |
| licence | BSD-3-Clause, as the rest of the package |

The last epoch's weights are kept, whatever their accuracy: none were chosen by the test set.
"""  # noqa: E501


def main() -> None:
    """Train, write, and say how good it is, as onnxruntime sees it."""
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar10", required=True, help="an archive or a folder, as load_cifar10 takes it")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    told = parser.parse_args()
    torch.set_num_threads(told.threads)
    torch.manual_seed(told.seed)
    began = time.perf_counter()
    net = build().to(memory_format=torch.channels_last)
    train(net, told.cifar10, told.epochs, told.seed)
    minutes = (time.perf_counter() - began) / 60
    net.eval()
    model = to_onnx(net)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    images, labels = tensors(told.cifar10, "test")
    scores = np.concatenate([session.run(None, {"images": some.numpy()})[0] for some in images.split(1000)])
    right = scores.argmax(1) == labels.numpy()
    ids = [(name, one) for name, some in zt.datasets.cifar10.PAPER_IDS.items() for one in some]
    said = scores.argmax(1)
    wrong = [f"{name} {one} ({zt.datasets.cifar10.CLASSES[said[one]]})" for name, one in ids if not right[one]]
    facts = {
        "a": WIDTH[0],
        "b": WIDTH[1],
        "h": HIDDEN,
        "parameters": sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer),
        "classes": ", ".join(zt.datasets.cifar10.CLASSES),
        "batch": BATCH,
        "epochs": told.epochs,
        "seed": told.seed,
        "torch": torch.__version__.split("+")[0],
        "minutes": minutes,
        "threads": told.threads,
        "accuracy": 100 * right.mean(),
        "paper": len(ids) - len(wrong),
        "wrong": ", ".join(wrong) or "none",
    }
    # What `zerothresh attack` has to know of a net: its value range, what its scores are, and the classes.
    classes = ",".join(zt.datasets.cifar10.CLASSES)
    helper.set_model_props(model, {"bounds": "-0.5 0.5", "scores": "log-probabilities", "classes": classes})
    told.out.mkdir(parents=True, exist_ok=True)
    onnx.save(model, told.out / "cifar10_small.onnx")
    (told.out / "README.md").write_text(CARD.format(**facts), encoding="utf-8")
    print(CARD.format(**facts))


if __name__ == "__main__":
    main()
