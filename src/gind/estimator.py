"""`GINDClassifier`: the model behind scikit-learn's interface, for tables and for graphs."""

import signal
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from rich.console import Console
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from torch_geometric.data import Data

from gind import train
from gind.certify import certify_model
from gind.datasets import random_split
from gind.features import csr
from gind.graph import Row
from gind.models import GIND
from gind.train import FitOptions, Part, Problem, show_progress

__all__ = ["GINDClassifier"]

Integers = NDArray[np.int64]
Edges = tuple[Tensor, Tensor | None]  # edge_index (2, E) and the weights, None if all are 1

_TAKEN = {"in_channels", "hidden_channels", "out_channels", "num_layers", "dropout", "task"}  # for `options`
_TRAINING = ("epochs", "patience", "lr", "weight_decay", "implicit_lr")  # fields of FitOptions
_ACCEPT: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float32}


class GINDClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Node classification by the equilibrium of a graph diffusion, semi-supervised where labels are missing.

    hidden, layers       width of the model and number of its implicit layers
    dropout              rate on the features and before the head
    neighbors            nearest neighbors that are joined where no graph is given (at most all other rows)
    epochs, patience     passes at most, and passes without a better validation accuracy (0: no limit) before the end
    lr, weight_decay     of the encoder and the head; `implicit_lr` is the learning rate of the implicit layers
    validation_fraction  share of the labelled nodes, drawn by class, that chooses the best epoch and does not train.
                         If it has fewer nodes than there are classes, or a class has fewer than 3, all labelled nodes
                         train and choose
    unlabelled           the value of `y` that marks a node without label: -1 as in `sklearn.semi_supervised`, "", or
                         nan (which None in `y` is too). None: every node has a label
    random_state         an int gives the same model on every call
    options              further arguments of `GIND` and `Diffusion`; `scaling` is `Row()` unless given here

    After `fit`: classes_, n_features_in_, feature_names_in_ (of a DataFrame), model_ (the `GIND`), report_ (the
    `FitReport`), certificate_ (the `ModelCertificate` of the last pass over all nodes), transduction_ (the predicted
    label of every node), validation_ (the nodes that were held out, maybe none), n_iter_ (epochs).
    """

    def __init__(
        self,
        *,
        hidden: int = 64,
        layers: int = 1,
        dropout: float = 0.5,
        neighbors: int = 10,
        epochs: int = 300,
        patience: int = 50,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        implicit_lr: float = 1e-3,
        validation_fraction: float = 0.1,
        unlabelled: Any = None,
        random_state: Any = 0,
        verbose: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.neighbors = neighbors
        self.epochs = epochs
        self.patience = patience
        self.lr = lr
        self.weight_decay = weight_decay
        self.implicit_lr = implicit_lr
        self.validation_fraction = validation_fraction
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.verbose = verbose
        self.options = options

    def fit(self, X: Any, y: Any, graph: Any = None) -> "GINDClassifier":
        """Train on the rows of `X` (nodes, features), dense or scipy sparse, and their labels `y`.

        `graph` is a scipy sparse adjacency matrix (its values are weights) or an integer `edge_index` (2, edges);
        without one the nearest neighbors of each row are joined. Ctrl-C acts when the estimator is usable.
        """
        params = self._checked_params()
        # only a missing `y` is for scikit-learn to refuse: it may hold markers that scikit-learn would refuse too
        X = _canonical(validate_data(self, X, None if y is None else "no_validation", **_ACCEPT, ensure_min_samples=2))
        self.classes_, codes = _encode(y, X, self.unlabelled)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self._X, self._index = X, cast(Any, None)
        if graph is None:
            self._index = NearestNeighbors(n_neighbors=min(params["neighbors"], X.shape[0] - 1)).fit(X)
            graph = self._index.kneighbors_graph()
        self._edges = _edges(graph, X.shape[0])
        training, self.validation_ = _split(codes, params["validation_fraction"], seed)
        data = Data(x=_tensor(X), edge_index=self._edges[0], edge_weight=self._edges[1])
        self.model_ = self._make_model(params, seed)
        self.report_ = train.fit(
            self.model_,
            _problem(data, codes, training, self.validation_ if len(self.validation_) else training),
            options=FitOptions(**{name: params[name] for name in _TRAINING}),
            seed=seed,
            observers=[show_progress(Console())] if self.verbose else [],
        )
        self.n_iter_ = len(self.report_.history)
        scores: list[Tensor] = []
        self.certificate_ = certify_model(self.model_, lambda: scores.append(self.model_(data.x, *self._edges)))
        self.transduction_ = self.classes_[scores[0].argmax(dim=1).numpy()]
        if not self.report_.finished:
            # so far the signal only ended the training: a grid search around this must end as well
            signal.raise_signal(signal.Signals[self.report_.stopped_by])
        return self

    def decision_function(self, X: Any, graph: Any = None) -> NDArray[np.float64]:
        """Scores (rows, classes); for two classes the second score minus the first (rows,). See `predict_proba`."""
        scores = self._scores(X, graph)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any, graph: Any = None) -> NDArray[np.float64]:
        """Probabilities (rows, classes).

        With `graph`, the rows of `X` are the nodes of that graph, and the training nodes play no part. Without, a row
        that equals one of the training is that node, and every other row is joined to its nearest training rows: the
        equilibrium is that of the whole, so new rows that share neighbors influence each other a little. If `fit`
        was given a graph, there is no way to tell how new rows are joined, and only the `X` of `fit` needs no graph.
        """
        return np.asarray(softmax(self._scores(X, graph), axis=1))

    def predict(self, X: Any, graph: Any = None) -> NDArray[Any]:
        """The most probable label of every row; see `predict_proba`."""
        best = self._scores(X, graph).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None) -> float:
        """Accuracy on the rows that have a label; see `predict_proba`."""
        y = column_or_1d(y)
        check_consistent_length(X, y, sample_weight)
        labelled = _labelled(y, self.unlabelled)
        weight = None if sample_weight is None else column_or_1d(sample_weight)[labelled]
        return float(accuracy_score(y[labelled], self.predict(X, graph)[labelled], sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked_params(self) -> dict[str, Any]:
        """The parameters as plain Python numbers (a grid search passes those of NumPy), refused if wrong."""
        given = self.get_params(deep=False)
        params = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        for name in ("hidden", "layers", "neighbors"):
            if type(value := params[name]) is not int or value < 1:
                raise ValueError(f"`{name}` must be an int >= 1, got {value!r}.")
        if type(fraction := params["validation_fraction"]) is not float or not 0 < fraction < 1:
            raise ValueError(f"`validation_fraction` must be a share between 0 and 1, got {fraction!r}.")
        if not isinstance(self.options, Mapping | None):
            raise TypeError(f"`options` must be a dict of arguments of GIND, or None, got {self.options!r}.")
        if taken := sorted(_TAKEN & set(self.options or ())):
            raise ValueError(f"`options` must not hold {taken}: use the parameters of GINDClassifier.")
        return params

    def _make_model(self, params: dict[str, Any], seed: int) -> GIND:
        options = {"scaling": Row(), "dropout": params["dropout"], **(self.options or {})}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return GIND(self.n_features_in_, params["hidden"], len(self.classes_), params["layers"], **options)

    def _scores(self, X: Any, graph: Any) -> NDArray[np.float64]:
        """(rows, classes) for the rows of `X`."""
        check_is_fitted(self)
        X = _canonical(validate_data(self, X, **_ACCEPT, reset=False))
        if graph is None:
            X, edges, nodes = self._join(X)
        else:
            edges, nodes = _edges(graph, X.shape[0]), np.arange(X.shape[0])
        with torch.no_grad():
            scores: Tensor = self.model_(_tensor(X), *edges)
        return scores.double().numpy()[nodes]

    def _join(self, X: Any) -> tuple[Any, Edges, Integers]:
        """The training rows with the new ones of `X`, the edges among them all, and the node of each row of `X`."""
        if sp.issparse(self._X) != sp.issparse(X):
            X = X.toarray() if sp.issparse(X) else sp.csr_array(X)
        keys, known = _keys(X), _keys(self._X)
        if keys == known:  # before single rows: equal rows of the training are nodes of their own
            return self._X, self._edges, np.arange(len(keys))
        if self._index is None:
            raise ValueError(
                "The model was fitted on a given graph, and `X` is not the `X` of `fit`, so how its rows are joined "
                "is unknown. Pass `graph=`, with one node for each row of `X`."
            )
        first = {key: node for node, key in reversed(list(enumerate(known)))}
        nodes = np.array([first.get(key, -1) for key in keys], dtype=np.int64)
        new = nodes < 0
        if not new.any():
            return self._X, self._edges, nodes
        nodes[new] = len(known) + np.arange(new.sum())
        nearest = self._index.kneighbors_graph(X[new]).tocoo()
        joints = torch.from_numpy(np.stack([len(known) + nearest.row, nearest.col]).astype(np.int64))
        rows = sp.vstack([self._X, X[new]], format="csr") if sp.issparse(X) else np.concatenate([self._X, X[new]])
        return rows, (torch.cat([self._edges[0], joints], dim=1), None), nodes


def _canonical(X: Any) -> Any:
    """A copy in which equal rows look equal; what the caller does to his array later does not change the model."""
    if not sp.issparse(X):
        return np.ascontiguousarray(X) + np.float32(0)  # -0 becomes 0
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _keys(X: Any) -> list[bytes]:
    """The content of each row."""
    if not sp.issparse(X):
        return [row.tobytes() for row in X]
    columns, ends = X.indices.astype(np.int64), zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [columns[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]


def _tensor(X: Any) -> Tensor:
    """A copy: torch warns of arrays that cannot be written to, such as those of a memory-mapped pickle."""
    if not sp.issparse(X):
        return torch.tensor(X)
    start, columns, values = (torch.tensor(part) for part in (X.indptr, X.indices, X.data))
    return csr(start.long(), columns.long(), values, X.shape)


def _labelled(y: NDArray[Any], unlabelled: Any) -> NDArray[np.bool_]:
    if unlabelled is None:
        return np.ones(len(y), dtype=bool)
    # NumPy has turned the numbers of a list with strings into strings
    mark = str(unlabelled) if y.dtype.kind == "U" else unlabelled
    missing = mark != mark
    return np.array([v is not None and v == v if missing else v != mark for v in y.tolist()], dtype=bool)


def _encode(y: Any, X: Any, unlabelled: Any) -> tuple[NDArray[Any], Integers]:
    """The classes, and the class number of each node, -1 where there is no label."""
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    labelled = _labelled(y, unlabelled)
    if not labelled.any():
        raise ValueError(f"Every entry of `y` is {unlabelled!r}, which marks a node without label. Label some nodes.")
    assert_all_finite(y[labelled], input_name="y")
    check_classification_targets(y[labelled])
    classes, numbers = np.unique(y[labelled], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"`y` must hold two classes or more, got one class, {classes.tolist()[0]!r}.")
    codes = np.full(len(y), -1, dtype=np.int64)
    codes[labelled] = numbers
    return classes, codes


def _split(codes: Integers, fraction: float, seed: int) -> tuple[Integers, Integers]:
    """The nodes that train and those that are held out: none if there are too few."""
    sizes = np.bincount(codes[codes >= 0])
    total = int(sizes.sum())
    held = round(fraction * total)
    if not len(sizes) <= held <= total - len(sizes) or sizes.min() < 3:
        return np.flatnonzero(codes >= 0), np.empty(0, dtype=np.int64)
    split = random_split(torch.from_numpy(codes), (total - held, held, 0), seed)
    return split.train.numpy(), split.val.numpy()


def _problem(data: Data, codes: Integers, training: Integers, validation: Integers) -> Problem:
    y = torch.from_numpy(codes)
    first, second = (Part(data, y[index], index) for index in map(torch.from_numpy, (training, validation)))
    return Problem("node", "accuracy", data.x.shape[1], int(y.max()) + 1, (first,), (second,))


def _edges(graph: Any, num_nodes: int) -> Edges:
    """The edges of an adjacency matrix or of an edge_index; node numbers and weights are checked by the model."""
    if sp.issparse(graph):
        if graph.shape != (num_nodes, num_nodes):
            raise ValueError(f"`graph` must have {num_nodes} nodes, one for each row of `X`, got shape {graph.shape}.")
        coo = graph.tocoo()
        weight = None if (coo.data == 1).all() else torch.from_numpy(coo.data.astype(np.float64))
        return torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)), weight
    sparse = isinstance(graph, Tensor) and graph.layout != torch.strided
    index = np.empty(0) if sparse else np.asarray(graph)
    if index.ndim != 2 or len(index) != 2 or index.dtype.kind not in "iu":
        kind = "a sparse tensor" if sparse else f"{index.dtype} of shape {index.shape}"
        raise ValueError(f"`graph` must be a scipy sparse matrix or an integer edge_index (2, edges), got {kind}.")
    return torch.tensor(index.astype(np.int64)), None
