"""Runs as data: a Spec in, a directory with a trained, tested and certified model out."""

from gind.experiments.artefact import Artefact, load_artefact
from gind.experiments.data import DataOptions, load_data
from gind.experiments.keys import ConfigError
from gind.experiments.models import MODELS
from gind.experiments.predict import Predictions, certify_run, evaluate_run, open_data, predict_run, write_predictions
from gind.experiments.run import Outcome, RunError, run
from gind.experiments.setup import set_up, validate
from gind.experiments.spec import Spec, assignment, combine, make_spec

__all__ = [
    "MODELS",
    "Artefact",
    "ConfigError",
    "DataOptions",
    "Outcome",
    "Predictions",
    "RunError",
    "Spec",
    "assignment",
    "certify_run",
    "combine",
    "evaluate_run",
    "load_artefact",
    "load_data",
    "make_spec",
    "open_data",
    "predict_run",
    "run",
    "set_up",
    "validate",
    "write_predictions",
]
