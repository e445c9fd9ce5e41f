"""What a worker does for a search: it trains, and tells the result on validation."""

import math
import signal
from pathlib import Path
from typing import NamedTuple

from gind.experiments import Spec, validate

__all__ = ["Result", "train"]


class Result(NamedTuple):
    """The best epoch's metric and loss on validation, or what went wrong."""

    value: float
    loss: float
    error: str = ""


def train(spec: Spec, root: Path | None) -> Result | None:
    """The result of a training with one thread; None if a signal stopped it, which is the same as killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the parent decides
    try:
        report = validate(spec, root=root, threads=1)
    except Exception as error:
        return Result(math.nan, math.nan, f"{type(error).__name__}: {' '.join(str(error).split())}")
    if not report.finished:
        return None
    if not math.isfinite(report.best_value) or not math.isfinite(report.best_loss):
        return Result(math.nan, math.nan, "no epoch had a finite loss on validation")
    return Result(report.best_value, report.best_loss)
