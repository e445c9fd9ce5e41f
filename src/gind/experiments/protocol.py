"""The protocols of graph classification: who trains, and what chooses the epoch whose accuracy is reported.

honest   a part of the training folds validates and chooses the epoch; the test part is evaluated once, at the end
nested   honest, and the same part chooses the settings too, fold by fold, among candidates (reports/choose.py)
paper    that of Xu et al. (2019), which the published code follows: all graphs outside of the test fold train, and with
         c_f(e) the test accuracy of fold f after epoch e

             e* = argmax_e mean_f c_f(e)  (the first, if several are best),   reported: mean ± std of c_f(e*) over f

last     the runs of "paper" again, each read at its last epoch, which no label chooses

A run of protocol "paper" writes its curve c_f and chooses nothing. Test labels choose e* where a table is made of ten
curves, and every such table says so.
"""

from collections.abc import Sequence

import numpy as np

from gind.datasets import Dataset, Split
from gind.datasets.entry import Entry
from gind.experiments.data import DataOptions
from gind.experiments.keys import ConfigError

__all__ = ["CHOICES", "DIGITS", "LAST", "best_epoch", "check_protocol", "parts_of"]

LAST = "last"

CHOICES = {
    "honest": "epoch chosen on validation",
    "nested": "epoch and settings chosen on validation, split by split",
    LAST: "last epoch, nothing is chosen",
    "paper": "epoch chosen on the mean test curve, as the published code does",
}
"""what chooses, in words, by protocol"""

DIGITS = 5
"""of the accuracies of a curve"""

FOLDS = 10
"""of a dataset in folds, unless the key `folds` says otherwise"""


def check_protocol(dataset: Dataset | Entry, options: DataOptions) -> None:
    """Refuse the paper's protocol for what is no graph classification in folds."""
    if options.protocol != "paper":
        return
    if dataset.task != "graph":
        raise ConfigError(
            f'protocol "paper" is cross-validation of graph classification; the task of {dataset.name} is '
            f"{dataset.task}. Leave it out."
        )
    if options.splits not in (None, "kfold"):
        raise ConfigError(f'protocol "paper" needs folds, got splits {options.splits!r}. Leave one of them out.')


def parts_of(split: Split, protocol: str) -> Split:
    """Who trains, validates and is tested: in the paper's protocol nobody validates."""
    return split.without_validation() if protocol == "paper" else split


def best_epoch(curves: Sequence[Sequence[float]]) -> int:
    """e*, counted from 1, of the curves (folds, epochs) of all folds."""
    # whole numbers, so that means which are equal on paper are equal here
    units = np.rint(np.asarray(curves, dtype=np.float64) * 10**DIGITS).astype(np.int64)
    return int(units.sum(axis=0).argmax()) + 1
