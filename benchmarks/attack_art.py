"""The black-box attacks of the Adversarial Robustness Toolbox (ART) beside ours, as far as they can be compared.

    pip install adversarial-robustness-toolbox
    python benchmarks/attack_art.py [--nets small resnet8.onnx] [--budgets 600 6000] [--seeds 20] [--write]

With --write, the numbers go into docs/attack-art.json and from there into the text of docs/attack.md.

None of ART's black-box attacks is universal and sparse. PixelAttack and ThresholdAttack are sparse, but make one
perturbation an image; so do ZooAttack, SquareAttack, SimBA, BoundaryAttack, HopSkipJump, SignOPTAttack and
GeoDA, which are not sparse either. UniversalPerturbation is universal, and takes SimBA as its inner attack, which needs
scores only: it is the one that can be made both, by keeping the 60 largest entries of what it finds (H_60). SimBA
takes steps of a whole value range along single coordinates. It has no budget: the number of its steps an image is the
largest power of two with which the classifier's counter stays within the budget. ART draws from NumPy's global
generator, which is seeded here.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path

import attack_summary
import numpy as np
from attack import K, Universal, problem_of

import zerothresh as zt
from zerothresh.comparison.summary import mean
from zerothresh.datasets.cifar10 import PAPER_IDS


def simba(problem: Universal, steps: int, seed: int) -> tuple[np.ndarray, int]:
    """The noise of one pass of UniversalPerturbation with SimBA, and the images that it asked for."""
    from art.attacks.evasion import UniversalPerturbation
    from art.estimators.classification import BlackBoxClassifierNeuralNetwork

    net, shape = problem.classifier, problem.stack.shape
    before = net.queries
    wrapped = BlackBoxClassifierNeuralNetwork(
        lambda x: np.exp(net(np.asarray(x, np.float32))),
        input_shape=shape,
        nb_classes=10,
        clip_values=(-0.5, 0.5),
        channels_first=True,
    )
    np.random.seed(seed)  # noqa: NPY002  ART draws from it
    inner = {"attack": "px", "max_iter": steps, "epsilon": 1.0, "order": "random", "batch_size": 1, "verbose": False}
    attack = UniversalPerturbation(
        wrapped, "simba", inner, delta=0.0, max_iter=1, eps=1.0, norm=np.inf, batch_size=32, verbose=False
    )
    attack.generate(problem.stack.flat.reshape(-1, *shape), np.eye(10)[problem.labels])
    return np.asarray(attack.noise, float).reshape(-1), net.queries - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", default=["small"])
    parser.add_argument("--budgets", nargs="+", type=int, default=[600, 6000])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="write docs/attack-art.json, and docs/attack.md from it")
    told = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    measured = []
    for net in told.nets:
        problems = {name: problem_of(net, zt.datasets.load_cifar10_paper(name)) for name in PAPER_IDS}
        for budget in told.budgets:
            rates, dense, counts = [], [], []
            for seed in range(told.seeds):
                row, whole = [], []
                for problem in problems.values():
                    noise, used = np.zeros(problem.d), 0
                    for steps in 2 ** np.arange(1, 14):
                        made, count = simba(problem, int(steps), seed)
                        if count > budget:
                            break
                        noise, used = made, count
                    sparse = zt.hard_threshold(noise, K)
                    row.append(float((problem.predictions(sparse) != problem.labels).mean()))
                    whole.append(float((problem.predictions(noise) != problem.labels).mean()))
                    counts.append(used)
                rates.append(row)
                dense.append(np.mean(whole))
            whole_rate = mean(np.mean(rates, axis=1))
            measured.append(
                {
                    "net": Path(net).stem,
                    "budget": budget,
                    "seeds": told.seeds,
                    "rate": whole_rate.value,
                    "low": whole_rate.low,
                    "high": whole_rate.high,
                    "dense": float(np.mean(dense)),
                    "queries": float(np.mean(counts)),
                }
            )
            each = " | ".join(f"{rate:.2f}" for rate in np.mean(rates, axis=0))
            print(
                f"| {net} | {budget:,} | ART UniversalPerturbation(SimBA), H_60 | {told.seeds} | {each} | "
                f"{whole_rate} | without H_60: {np.mean(dense):.2f} | "
                f"{np.mean(counts):.0f} queries |",
                flush=True,
            )
    if told.write:
        from importlib.metadata import version

        found = {"art": version("adversarial-robustness-toolbox"), "rows": measured}
        attack_summary.ART.write_text(json.dumps(found, indent=1) + "\n")
        sentence = attack_summary.art_sentence(found, attack_summary.BENCHMARK.read_text())
        attack_summary.put(sentence, attack_summary.ART_MARK)


if __name__ == "__main__":
    main()
