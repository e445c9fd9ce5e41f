"""The directory of a run: what lies in it, and how a trained model comes out of it again.

config.toml             the Spec, and under [trained] what the model was built for
weights.safetensors     the best weights on validation (protocol "paper", which has none: the last)
report.json             results, certificate, versions, seconds
metrics.jsonl           a line per epoch
checkpoint.safetensors  where training stands, for --resume
"""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gind.datasets import DataError, Dataset
from gind.experiments.keys import ConfigError
from gind.experiments.spec import Spec, make_spec
from gind.experiments.toml import dump_toml, read_toml
from gind.features import compact
from gind.files import write_atomically
from gind.train import load_tensors, save_tensors
from gind.train.checkpoint import CheckpointError, section

__all__ = ["Artefact", "load_artefact", "save_weights", "write_config", "write_json"]

CONFIG, WEIGHTS, REPORT = "config.toml", "weights.safetensors", "report.json"
METRICS, CHECKPOINT = "metrics.jsonl", "checkpoint.safetensors"
PREDICTIONS, BESIDE, TENSORBOARD = "predictions.csv", "beside", "tensorboard"

# not within a text, where a line break is written \n
_NUMBERS = re.compile(r"\[\n([-+.,\deE\s]+)\n\s*\]")


@dataclasses.dataclass(frozen=True, eq=False)
class Artefact:
    """A trained model with all it needs to predict elsewhere."""

    directory: Path
    spec: Spec
    model: nn.Module
    trained: Mapping[str, Any]
    """task, metric, features (a count), feature_names and classes of the data it was trained on"""
    statistics: dict[str, Tensor]
    """mean and scale of the features, where they were standardized"""

    def adapt(self, dataset: Dataset) -> Dataset:
        """The data as the model knows it: its columns in the order of training, its classes by the same numbers.

        Refused if it is of another kind or width, has other columns, or a label that was never seen.
        """
        names, known = tuple(self.trained["feature_names"]), tuple(self.trained["classes"])
        if dataset.task != self.trained["task"]:
            raise self._misfit(dataset, "task", dataset.task, self.trained["task"])
        if names and dataset.feature_names:
            missing = [name for name in names if name not in dataset.feature_names]
            extra = [name for name in dataset.feature_names if name not in names]
            if missing or extra:
                problem = f"lacks the feature {missing[0]!r} that" if missing else f"has a feature {extra[0]!r} that"
                raise DataError(f"{dataset.name} {problem} {self.directory} was {'' if missing else 'not '}trained on.")
        if dataset.num_features != self.trained["features"]:
            raise self._misfit(dataset, "number of features", dataset.num_features, self.trained["features"])
        unknown = [name for name in dataset.classes if name not in known]
        if unknown:
            raise DataError(f"{dataset.name} has a label {unknown[0]!r} that {self.directory} was not trained on.")
        graphs = dataset.graphs
        if names and dataset.feature_names and names != dataset.feature_names:
            order = torch.tensor([dataset.feature_names.index(name) for name in names])
            graphs = tuple(_changed(graph, "x", _columns(graph.x, order)) for graph in graphs)
        if dataset.classes and dataset.classes != known:
            # the last entry is for -1, no label
            table = torch.tensor([*(known.index(name) for name in dataset.classes), -1])
            graphs = tuple(_changed(graph, "y", table[graph.y]) for graph in graphs)
        return dataclasses.replace(dataset, graphs=graphs, classes=known, feature_names=names)

    def _misfit(self, dataset: Dataset, what: str, here: object, there: object) -> DataError:
        return DataError(f"The {what} of {dataset.name} is {here}, but {self.directory} was trained for {there}.")


def _changed(graph: Data, name: str, value: Tensor) -> Data:
    changed = graph.clone()
    changed[name] = value
    return changed


def _columns(x: Tensor, order: Tensor) -> Tensor:
    return x[:, order] if x.layout == torch.strided else compact(x.to_dense()[:, order])


def describe(dataset: Dataset) -> dict[str, Any]:
    """What a model must be told about its data."""
    return {
        "task": dataset.task,
        "metric": dataset.metric,
        "features": dataset.num_features,
        "feature_names": list(dataset.feature_names),
        "classes": list(dataset.classes),
    }


def write_config(directory: Path, spec: Spec, dataset: Dataset) -> None:
    """config.toml."""
    with write_atomically(directory / CONFIG) as temporary:
        temporary.write_text(dump_toml({**spec.table(), "trained": describe(dataset)}), encoding="utf-8")


def read_config(directory: Path) -> tuple[Spec, dict[str, Any]]:
    """The Spec and the [trained] table of a run."""
    table, trained = read_run(directory)
    return make_spec(table, use_defaults=False), trained


def read_run(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a run, which may be of another version and not all known, and its [trained] table."""
    path = directory / CONFIG
    if not path.is_file():
        raise ConfigError(f"{directory} is not the directory of a run: it has no {CONFIG}.")
    table = read_toml(path)
    trained = table.pop("trained", None)
    wanted = {"task": str, "metric": str, "features": int, "feature_names": list, "classes": list}
    if not isinstance(trained, dict) or any(not isinstance(trained.get(k), t) for k, t in wanted.items()):
        raise ConfigError(f"{path} does not say in [trained] what the model was trained for.")
    return table, trained


def save_weights(directory: Path, model: nn.Module, name: str, statistics: Mapping[str, Tensor]) -> None:
    """weights.safetensors."""
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"features.{key}": value for key, value in statistics.items()}
    save_tensors(directory / WEIGHTS, tensors, {"model": name}, "weights")


def load_artefact(directory: str | Path) -> Artefact:
    """The model of a finished run, with its best weights, in evaluation mode."""
    directory = Path(directory)
    spec, trained = read_config(directory)
    path = directory / WEIGHTS
    if not path.is_file():
        raise CheckpointError(f"{directory} has no {WEIGHTS}: the training has not ended. Run it with --resume.")
    tensors, about = load_tensors(path, "weights")
    if about.get("model") != spec.model:
        raise CheckpointError(f"{path} holds a {about.get('model')}, but {CONFIG} says {spec.model}.")
    model = spec.new_model(trained["task"], trained["features"], len(trained["classes"]))
    try:
        model.load_state_dict(section(tensors, "model"))
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{path} does not fit the model of {CONFIG}: {first}") from error
    model.eval()
    statistics = section(tensors, "features")
    if statistics and statistics.keys() != {"mean", "scale"}:
        raise CheckpointError(f"{path} has mean or scale of the features, but not both. Train again.")
    return Artefact(directory, spec, model, trained, statistics)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """A JSON file, atomically; numbers that are not finite become null. A list of numbers stands in one line."""
    text = json.dumps(_finite(content), indent=2)
    text = _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)
    with write_atomically(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, torch.Tensor):
        return _finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
