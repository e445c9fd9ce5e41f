"""How good scores are: loss and metrics by name."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from gind.datasets import DataError, Metric, Task

__all__ = ["METRICS", "loss", "metric"]


def loss(scores: Tensor, y: Tensor, task: Task) -> Tensor:
    """Mean cross entropy; for several labels per node the mean binary cross entropy."""
    if task == "multilabel":
        return F.binary_cross_entropy_with_logits(scores, y)
    _check(scores, y)
    return F.cross_entropy(scores, y)


def _check(scores: Tensor, y: Tensor) -> None:
    if scores.dim() != 2 or (y.numel() and int(y.max()) >= scores.shape[1]):
        outputs = f"{scores.shape[1]} outputs" if scores.dim() == 2 else f"scores of shape {tuple(scores.shape)}"
        raise DataError(
            f"The model has {outputs}, but there are labels up to {int(y.max())}. Give it as many outputs as classes."
        )


def accuracy(scores: Tensor, y: Tensor) -> float:
    """Share of rows whose largest score is at the label."""
    return float((scores.argmax(dim=1) == y).double().mean())


def micro_f1(scores: Tensor, y: Tensor) -> float:
    """2 TP / (2 TP + FP + FN) over all entries of (rows, labels); a label is predicted where its score is positive."""
    predicted, true = scores > 0, y > 0.5
    hits = 2 * int((predicted & true).sum())
    wrong = int((predicted ^ true).sum())
    return hits / (hits + wrong) if hits + wrong else 1.0


def roc_auc(scores: Tensor, y: Tensor) -> float:
    """Area under the ROC curve of the second of two classes."""
    from sklearn.metrics import roc_auc_score

    if scores.shape[1] != 2:
        raise DataError(f"ROC AUC is for two classes, the scores have {scores.shape[1]}. Use the metric 'accuracy'.")
    if len(torch.unique(y)) < 2:
        raise DataError("ROC AUC needs rows of both classes, all labels here are equal. Take a larger part.")
    # roc_auc_score is untyped
    return float(roc_auc_score(y.numpy(), (scores[:, 1] - scores[:, 0]).double().numpy()))


METRICS: dict[Metric, Callable[[Tensor, Tensor], float]] = {
    "accuracy": accuracy,
    "micro_f1": micro_f1,
    "roc_auc": roc_auc,
}


def metric(name: Metric, scores: Tensor, y: Tensor) -> float:
    """The metric of that name, on detached scores; larger is better."""
    return METRICS[name](scores.detach().cpu(), y.cpu())
