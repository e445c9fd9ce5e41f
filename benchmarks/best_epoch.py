"""Which rule for the best epoch carries over to nodes that did not choose it (decision 0019). Test parts are not used.

The model trains on the training part of each split. Half of the validation part, drawn at random, chooses the epoch by
either rule, the other half is what it is judged on. So models can be compared, too, on nodes that chose nothing about a
training. The settings are the defaults; learning rates stay as they are, and no patience ends a training.

    python benchmarks/best_epoch.py DATA texas wisconsin --model gind --model gind-published --seeds 2
"""

import argparse
import itertools
import statistics
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gind.experiments import Spec, make_spec
from gind.experiments.setup import set_up
from gind.train import call, make_optimizer
from gind.train.step import train_step, warm_starts
from gind.train.stopping import BestBy, Patience

HALVES = 50


def curves(data: str, spec: Spec, epochs: int) -> tuple[Tensor, Tensor]:
    """(epochs, nodes) whether each node of the validation part is right, and its loss."""
    ready = set_up(spec, data)
    torch.manual_seed(spec.seed)
    optimizer = make_optimizer(ready.model, spec.train)
    (train,), (val,) = ready.problem.train, ready.problem.val
    warm, _ = warm_starts(ready.model, spec.train.warm_start)
    right, loss = [], []
    for _ in range(epochs):
        train_step(ready.model, train, ready.problem.task, optimizer, spec.train.clip, warm)
        ready.model.eval()
        with torch.no_grad():
            scores = call(ready.model, val)
        right.append((scores.argmax(1) == val.y).double())
        loss.append(F.cross_entropy(scores.double(), val.y, reduction="none"))
    return torch.stack(right), torch.stack(loss)


def judge(right: Tensor, loss: Tensor, best_by: BestBy) -> float:
    """Mean accuracy on one half at the epoch that the other half chooses."""
    found = []
    for seed in range(HALVES):
        order = torch.randperm(right.shape[1], generator=torch.Generator().manual_seed(seed))
        chooses, judges = order[: len(order) // 2], order[len(order) // 2 :]
        patience = Patience(0, best_by=best_by)
        means = zip(right[:, chooses].mean(1).tolist(), loss[:, chooses].mean(1).tolist(), strict=True)
        for epoch, (accuracy, mean_loss) in enumerate(means):
            patience.improves(epoch, accuracy, mean_loss)
        found.append(float(right[patience.epoch, judges].mean()))
    return statistics.fmean(found)


def main() -> None:
    """Print a table: the mean of both rules with its standard error, and of their difference by split and seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="directory with datasets")
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--model", action="append", help="may be given several times (default: gind)")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'dataset':<18}{'model':<18}{'metric':>8}{'error':>8}{'loss':>8}{'error':>8}{'gain':>8}{'error':>8}")
    for dataset, model in itertools.product(options.datasets, options.model or ["gind"]):
        tables = ({"split": split, "seed": seed} for split in range(10) for seed in range(options.seeds))
        specs = [make_spec({"dataset": dataset, "model": model, **table}) for table in tables]
        seen = [curves(options.data, spec, options.epochs) for spec in specs]
        metric, loss = ([100 * judge(*each, rule) for each in seen] for rule in ("metric", "loss"))
        gains = [b - a for a, b in zip(metric, loss, strict=True)]
        numbers = [number for each in (metric, loss, gains) for number in mean_and_error(each)]
        print(f"{dataset:<18}{model:<18}" + "".join(f"{number:>8.2f}" for number in numbers), flush=True)


def mean_and_error(numbers: Sequence[float]) -> tuple[float, float]:
    """Of the mean; the splits share nodes, so the error is too small."""
    return statistics.fmean(numbers), statistics.stdev(numbers) / len(numbers) ** 0.5


if __name__ == "__main__":
    main()
