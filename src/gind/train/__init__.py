"""Training: one loop for every model and every task, which cannot see the test part unless a `Problem` shows it."""

from gind.files import write_atomically
from gind.train.checkpoint import CheckpointError, load_tensors, save_tensors
from gind.train.loop import (
    IMPLICIT_OPTIONS,
    FitReport,
    check_fit,
    fit,
    implicit_parameters,
    make_optimizer,
    unread_options,
)
from gind.train.metrics import METRICS
from gind.train.observe import MetricsFile, Observer, TensorBoard
from gind.train.options import FitOptions, OptionError
from gind.train.problem import Part, Problem, Watched, make_parts, split_of_masks
from gind.train.progress import LiveProgress, PlainProgress, show_progress
from gind.train.schedule import Constant, Cosine, Linear, Restarts, Schedule, StepDecay
from gind.train.state import EpochRecord
from gind.train.step import Evaluation, SolveStatistics, call, evaluate, takes_start

__all__ = [
    "IMPLICIT_OPTIONS",
    "METRICS",
    "CheckpointError",
    "Constant",
    "Cosine",
    "EpochRecord",
    "Evaluation",
    "FitOptions",
    "FitReport",
    "Linear",
    "LiveProgress",
    "MetricsFile",
    "Observer",
    "OptionError",
    "Part",
    "PlainProgress",
    "Problem",
    "Restarts",
    "Schedule",
    "SolveStatistics",
    "StepDecay",
    "TensorBoard",
    "Watched",
    "call",
    "check_fit",
    "evaluate",
    "fit",
    "implicit_parameters",
    "load_tensors",
    "make_optimizer",
    "make_parts",
    "save_tensors",
    "show_progress",
    "split_of_masks",
    "takes_start",
    "unread_options",
    "write_atomically",
]
