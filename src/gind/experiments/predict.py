"""Using a trained run: evaluate, certify and predict, on its own data or on other data."""

import csv
import dataclasses
import io
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gind.certify import ModelCertificate, certify_model, proven_labels
from gind.datasets import DataError, Dataset
from gind.diffusion import Diffusion
from gind.equilibrium import ConvergenceWarning
from gind.experiments.artefact import Artefact
from gind.experiments.data import load_data, prepare
from gind.experiments.protocol import parts_of
from gind.experiments.run import certificate_table, certify_part, whole_parts
from gind.experiments.setup import BATCH
from gind.features import encode
from gind.files import write_atomically
from gind.graph import as_graph
from gind.models import GIND
from gind.train import Part, call, evaluate, make_parts

__all__ = ["Predictions", "certify_run", "evaluate_run", "open_data", "predict_run", "write_predictions"]


@dataclasses.dataclass(frozen=True, eq=False)
class Predictions:
    """Scores of every node or graph, and the certificate of the equilibria they were read from."""

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    probabilities: Tensor
    """(rows, classes): of one class each, or for task "multilabel" of every label"""
    labels: Tensor
    """(rows,) the class of the highest score"""
    multilabel: bool
    certificate: ModelCertificate | None
    proven: Tensor | None
    """(rows,) whether the label is that of the exact equilibrium; None where this is not known"""


def open_data(artefact: Artefact, dataset: str | None, root: str | Path | None, *, labels: bool) -> Dataset:
    """The data to use: that of the run, or another of the same kind, with features scaled as in training."""
    options = artefact.spec.data
    name = artefact.spec.dataset if dataset is None else dataset
    loaded = load_data(name, root, options, require_labels=labels)
    return prepare(artefact.adapt(loaded), options, artefact.statistics)[0]


def evaluate_run(artefact: Artefact, dataset: Dataset, split: int) -> dict[str, Any]:
    """Metric and loss on each part of a split, as the protocol of the run shares it out."""
    if not dataset.splits:
        raise DataError(f"{dataset.name} has no labels to evaluate on.")
    parts = parts_of(dataset.split(split), artefact.spec.data.protocol)
    result: dict[str, Any] = {"dataset": dataset.name, "split": split}
    for name in ("train", "val", "test"):
        index = getattr(parts, name)
        if len(index):
            seen = evaluate(artefact.model, make_parts(dataset, index, BATCH), dataset.task, dataset.metric)
            result[name] = {dataset.metric: seen.value, "loss": seen.loss}
    return result


def certify_run(artefact: Artefact, dataset: Dataset) -> tuple[ModelCertificate | None, dict[str, Any] | None]:
    """The certificate of a pass over all the data, and its table for JSON."""
    certificate = certify_part(artefact.model, dataset, None)
    return certificate, None if certificate is None else certificate_table(certificate)


def predict_run(artefact: Artefact, dataset: Dataset) -> Predictions:
    """Probabilities of every node, or of every graph."""
    parts = whole_parts(dataset)
    passed: list[Tensor] = []
    certificate = certify_model(artefact.model, lambda: passed.extend(call(artefact.model, part) for part in parts))
    scores = torch.cat(passed)
    multilabel = dataset.task == "multilabel"
    probabilities = scores.sigmoid() if multilabel else scores.softmax(dim=1)
    labels = scores.argmax(dim=1)
    ids = dataset.node_ids or tuple(map(str, range(len(scores))))
    proven = None if dataset.task != "node" else _proven(artefact.model, parts[0], labels)
    return Predictions(ids, tuple(artefact.trained["classes"]), probabilities, labels, multilabel, certificate, proven)


def _proven(model: nn.Module, part: Part, labels: Tensor) -> Tensor | None:
    """Which of these labels of one graph are proven: for one implicit layer with a linear head."""
    if not isinstance(model, GIND) or len(model.layers) != 1 or model.between != "none" or model.readout != "last":
        return None
    layer, linear = model.layers[0], [m for m in model.head.modules() if isinstance(m, nn.Linear)]
    if not isinstance(layer, Diffusion) or len(linear) != 1 or not layer.has_energy or layer.output_norm == "graph":
        return None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        graph = as_graph(
            part.data.edge_index, part.data.num_nodes, part.data.get("edge_weight"), directed=model.directed
        )
        b = encode(part.data.x, model.encoder)
        _, solution = layer(b, graph, return_solution=True)
    return proven_labels(layer, linear[0], b, graph, solution, labels)


def write_predictions(path: Path, predictions: Predictions) -> None:
    """CSV: id, prediction, the probability of every class, residual and bound of the equilibrium, label proven."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    certified = predictions.certificate
    proof = [] if certified is None else [f"{certified.residual:.3e}", f"{certified.bound:.3e}"]
    proven = [] if predictions.proven is None else ["yes" if p else "no" for p in predictions.proven.tolist()]
    probabilities = [f"p({name})" for name in predictions.classes]
    writer.writerow(
        ["id", "prediction", *probabilities, *["residual", "bound"][: len(proof)], *["proven"][: len(proven)]]
    )
    for number, (name, row) in enumerate(zip(predictions.ids, predictions.probabilities.tolist(), strict=True)):
        if predictions.multilabel:
            chosen = " ".join(label for label, p in zip(predictions.classes, row, strict=True) if p > 0.5)
        else:
            chosen = predictions.classes[int(predictions.labels[number])]
        writer.writerow([name, chosen, *(f"{p:.6f}" for p in row), *proof, *proven[number : number + 1]])
    with write_atomically(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")
