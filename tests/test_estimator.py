"""`GINDClassifier`: scikit-learn's own checks, the labels it finds on real digits, and what it refuses."""

import functools
import pickle
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks

import gind
from gind.datasets import load
from gind.estimator import GINDClassifier
from gind.train import EpochRecord, Observer

Arrays = tuple[NDArray[Any], NDArray[Any]]

# a few epochs at a loose tolerance: the checks are about the interface, and ask for 83 percent on three blobs once
QUICK: dict[str, Any] = {
    "hidden": 16,
    "dropout": 0.0,
    "neighbors": 5,
    "epochs": 4,
    "lr": 0.1,
    "options": {"stop": gind.Stop(1e-2, 200)},
}


every_check: pytest.MarkDecorator = parametrize_with_checks([GINDClassifier(**QUICK)])  # scikit-learn has no types


@every_check
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@functools.cache
def digits(count: int = 600, labels: int = 100) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Features, true labels, and the labels of a few, -1 elsewhere."""
    data = load("digits").graphs[0]
    x, y = data.x.numpy()[:count], data.y.numpy()[:count]
    known = np.random.default_rng(0).permutation(count)[:labels]
    partial = np.full(count, -1)
    partial[known] = y[known]
    return x, y, partial


@functools.cache
def fitted_on_digits() -> GINDClassifier:
    x, _, partial = digits()
    return GINDClassifier(hidden=32, dropout=0.0, neighbors=5, epochs=30, patience=30, lr=0.03, unlabelled=-1).fit(
        x, partial
    )


@functools.cache
def blobs() -> Arrays:
    x, y = make_blobs(60, centers=3, n_features=4, random_state=0)
    return (x / np.abs(x).max()).astype(np.float32), y


def quick(**changes: Any) -> GINDClassifier:
    return GINDClassifier(**{**QUICK, **changes})


def test_most_digits_are_found_from_a_sixth_of_the_labels() -> None:
    model, (_, y, partial) = fitted_on_digits(), digits()
    hidden = partial < 0
    right = float((model.transduction_ == y)[hidden].mean())
    assert right > 0.9
    assert right > 3 * np.bincount(y[hidden]).max() / hidden.sum()  # the largest class alone


def test_digits_that_were_not_there_are_found_too() -> None:
    data = load("digits").graphs[0]
    new = slice(600, 700)
    assert fitted_on_digits().score(data.x.numpy()[new], data.y.numpy()[new]) > 0.8


def test_what_fit_leaves_behind() -> None:
    model, (x, _, partial) = fitted_on_digits(), digits()
    assert model.classes_.tolist() == list(range(10))
    assert model.n_features_in_ == x.shape[1]
    assert isinstance(model.model_, gind.GIND)
    assert isinstance(model.report_, gind.FitReport)
    assert model.n_iter_ == len(model.report_.history) == 30
    assert isinstance(model.certificate_, gind.ModelCertificate)
    assert model.certificate_.reached
    assert model.certificate_.proven
    assert len(model.validation_) == 10
    assert (partial[model.validation_] >= 0).all()
    np.testing.assert_array_equal(model.predict(x), model.transduction_)


def test_probabilities_and_scores_agree_with_the_labels() -> None:
    x, y = blobs()
    model = quick().fit(x, y)
    probabilities = model.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(x))
    np.testing.assert_array_equal(model.decision_function(x).argmax(axis=1), model.predict(x))
    assert quick().fit(x, y > 0).decision_function(x).shape == (60,)


def test_the_seed_decides_and_the_global_generator_does_not() -> None:
    x, y = blobs()
    states: list[Any] = []
    results = []
    for global_seed, seed in ((1, 0), (2, 0), (2, 1)):
        torch.manual_seed(global_seed)
        before = torch.random.get_rng_state()
        results.append(quick(dropout=0.5, random_state=seed).fit(x, y).predict_proba(x))
        states.append(torch.equal(before, torch.random.get_rng_state()))
    assert all(states)
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[1], results[2])
    assert quick(random_state=None).fit(x, y).n_iter_ == 4


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.coo_array], ids=lambda make: make.__name__)
def test_sparse_features_equal_dense_ones(make: Any) -> None:
    x, y = blobs()
    x = np.where(x > 0, x, 0)
    dense, sparse = quick().fit(x, y), quick().fit(make(x), y)
    new = x[:7] + np.float32(0.01)
    for rows in (x, new):
        np.testing.assert_allclose(sparse.predict_proba(make(rows)), dense.predict_proba(rows), atol=1e-4)
        # what was fitted on one kind predicts the other
        np.testing.assert_allclose(sparse.predict_proba(rows), sparse.predict_proba(make(rows)), atol=1e-6)
        np.testing.assert_allclose(dense.predict_proba(make(rows)), dense.predict_proba(rows), atol=1e-6)


def test_nearest_neighbors_given_as_a_graph_change_nothing() -> None:
    x, y = blobs()
    expected = quick().fit(x, y)
    nearest = kneighbors_graph(x, 5)
    edge_index = np.stack(nearest.nonzero())
    for graph in (nearest, nearest.astype(bool), sp.coo_array(nearest), edge_index, torch.from_numpy(edge_index)):
        model = quick().fit(x, y, graph)
        np.testing.assert_array_equal(model.predict_proba(x), expected.predict_proba(x))
        np.testing.assert_array_equal(model.predict_proba(x, graph), expected.predict_proba(x))


def test_weights_of_a_graph_count() -> None:
    x, y = blobs()
    graph = kneighbors_graph(x, 5)
    model = quick().fit(x, y, graph)
    assert not np.allclose(model.predict_proba(x, graph * 0.1), model.predict_proba(x, graph))


def test_all_neighbors_is_the_most_there_can_be() -> None:
    x, y = blobs()
    every = quick(neighbors=59).fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(quick(neighbors=1000).fit(x, y).predict_proba(x), every)


def test_rows_of_the_training_are_their_nodes() -> None:
    x, y = blobs()
    model = quick().fit(x, y)
    some = np.array([7, 3, 50])
    np.testing.assert_array_equal(model.predict_proba(x[some]), model.predict_proba(x)[some])
    # also among rows that are new, which move the whole a little
    mixed = np.concatenate([x[some], x[some] + np.float32(0.01)])
    np.testing.assert_allclose(model.predict_proba(mixed)[:3], model.predict_proba(x)[some], atol=0.05)


def test_new_rows_join_the_training_graph() -> None:
    x, y = blobs()
    new = x[:4] + np.float32(0.01)
    model = quick().fit(x, y)
    nearest = kneighbors_graph(x, 5)
    joined = sp.block_array([[nearest, None], [model._index.kneighbors_graph(new), sp.csr_array((4, 4))]])
    whole = model.predict_proba(np.concatenate([x, new]), joined)
    np.testing.assert_allclose(model.predict_proba(new), whole[60:], atol=1e-6)


@pytest.mark.parametrize(
    ("names", "mark"),
    [
        (np.array([0, 1, 2]), -1),
        (np.array([0.0, 1.0, 2.0]), np.nan),
        (np.array(["a", "b", "c"]), ""),
        (np.array(["a", "b", "c"], dtype=object), None),
        (np.array(["a", "b", "c"], dtype=object), np.nan),
        (np.array(["a", "b", "c"]), -1),
    ],
    ids=["-1", "nan", "empty", "None", "missing", "-1 among strings"],
)
def test_marks_of_unlabelled_nodes(names: NDArray[Any], mark: Any) -> None:
    x, y = blobs()
    labels = [mark if node % 2 else name for node, name in enumerate(names[y])]
    given: Any = np.array(labels, dtype=object) if names.dtype == object else labels
    model = quick(unlabelled=np.nan if mark is None else mark).fit(x, given)
    np.testing.assert_array_equal(model.classes_, names)
    expected = quick(unlabelled=-1).fit(x, np.where(np.arange(60) % 2, -1, y))
    np.testing.assert_array_equal(model.transduction_, names[expected.transduction_])
    # rows without label are neither right nor wrong
    assert model.score(x, given) == expected.score(x[::2], y[::2])


def test_a_number_is_a_class_unless_it_is_the_mark() -> None:
    x, y = blobs()
    assert quick().fit(x, y - 1).classes_.tolist() == [-1, 0, 1]
    assert quick(unlabelled=-1).fit(x, y - 1).classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "fraction", "held"), [(60, 0.2, 12), (60, 0.05, 3), (60, 0.04, 0), (7, 0.5, 0), (60, 0.98, 0)]
)
def test_validation_holds_out_a_part_if_there_are_enough_labels(labels: int, fraction: float, held: int) -> None:
    x, y = blobs()
    partial = np.where(np.arange(60) < labels, y, -1)
    model = quick(unlabelled=-1, validation_fraction=fraction).fit(x, partial)
    assert len(model.validation_) == held
    if held >= 12:
        assert np.bincount(y[model.validation_]).tolist() == [4, 4, 4]


def test_pickled_and_cloned() -> None:
    x, y = blobs()
    model = quick().fit(x, y)
    new = x + np.float32(0.01)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), model.predict_proba(new))
    copy = clone(model)
    assert not hasattr(copy, "model_")
    assert copy.get_params()["options"] == QUICK["options"]


def test_later_changes_of_the_array_do_not_matter() -> None:
    x, y = blobs()
    mine, edges = x.copy(), np.stack(kneighbors_graph(x, 5).nonzero())
    model = quick().fit(mine, y, edges)
    expected = model.predict_proba(x)
    mine[:], edges[:] = 0, 0
    np.testing.assert_array_equal(model.predict_proba(x), expected)


def test_a_grid_search_takes_numbers_of_numpy() -> None:
    x, y = blobs()
    search = GridSearchCV(quick(), {"hidden": np.array([4, 8]), "lr": np.array([0.1], np.float32)}, cv=2)
    assert search.fit(x, y).best_params_["hidden"] in (4, 8)


def test_options_reach_the_layers() -> None:
    x, y = blobs()
    layers = quick(layers=2, options={"scaling": gind.Symmetric(), **QUICK["options"]}).fit(x, y).model_.layers
    assert [layer.scaling for layer in layers] == [gind.Symmetric(), gind.Symmetric()]
    assert quick().fit(x, y).model_.layers[0].scaling == gind.Row()


def test_verbose_tells_of_the_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = blobs()
    quick(verbose=True).fit(x, y)
    assert "epoch 4/4" in capsys.readouterr().out
    quick().fit(x, y)
    assert capsys.readouterr().out == ""


def test_ctrl_c_leaves_a_usable_model(monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient(Observer):
        def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None: ...

        def epoch(self, record: EpochRecord) -> None:
            signal.raise_signal(signal.SIGINT)

    def impatient(console: Console) -> Observer:
        return Impatient()

    monkeypatch.setattr("gind.estimator.show_progress", impatient)
    x, y = blobs()
    model = quick(verbose=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    assert model.n_iter_ == 1
    assert len(model.predict(x)) == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 0}, "`hidden` must be an int >= 1, got 0"),
        ({"layers": 1.5}, "`layers` must be an int >= 1, got 1.5"),
        ({"neighbors": True}, "`neighbors` must be an int >= 1, got True"),
        ({"epochs": 0}, "`epochs` must be an int >= 1, got 0"),
        ({"lr": -1.0}, "`lr` must be a finite number >= 0, got -1.0"),
        ({"dropout": 1.0}, r"`dropout` must lie in \[0, 1\), got 1.0"),
        ({"validation_fraction": 0.0}, "`validation_fraction` must be a share between 0 and 1, got 0.0"),
        ({"validation_fraction": 1}, "`validation_fraction` must be a share between 0 and 1, got 1"),
        ({"options": ["scaling"]}, "`options` must be a dict"),
        ({"options": {"dropout": 0.1}}, r"`options` must not hold \['dropout'\]"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(changes: dict[str, Any], message: str) -> None:
    x, y = blobs()
    with pytest.raises((ValueError, TypeError), match=message):
        quick(**changes).fit(x, y)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (sp.eye_array(59), r"`graph` must have 60 nodes, one for each row of `X`, got shape \(59, 59\)"),
        (np.eye(60), r"edge_index \(2, edges\), got float64 of shape \(60, 60\)"),
        (np.zeros((3, 5), dtype=int), r"got int64 of shape \(3, 5\)"),
        (torch.eye(60).to_sparse(), "got a sparse tensor"),
        (np.array([[0], [60]]), "holds node 60 but the graph has 60 nodes"),
        (-sp.eye_array(60), "Weights must not be negative"),
        (sp.eye_array(60) * np.nan, "Weights must be finite"),
    ],
    ids=["size", "dense", "shape", "sparse tensor", "range", "negative", "nan"],
)
def test_wrong_graphs_are_refused(graph: Any, message: str) -> None:
    x, y = blobs()
    with pytest.raises(ValueError, match=message):
        quick().fit(x, y, graph)
    with pytest.raises(ValueError, match=message):
        fitted_on_blobs().predict(x, graph)


@functools.cache
def fitted_on_blobs() -> GINDClassifier:
    return quick().fit(*blobs())


def test_wrong_data_is_refused() -> None:
    x, y = blobs()
    with pytest.raises(ValueError, match="one class, 5"):
        quick().fit(x, np.full(60, 5))
    with pytest.raises(ValueError, match="Every entry of `y` is -1"):
        quick(unlabelled=-1).fit(x, np.full(60, -1))
    with pytest.raises(ValueError, match="contains NaN"):
        quick().fit(np.where(x == x.max(), np.nan, x), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted_on_blobs().score(x, y[:-1])


def test_new_rows_need_a_graph_if_the_training_had_one() -> None:
    x, y = blobs()
    graph = kneighbors_graph(x, 5)
    model = quick().fit(x, y, graph)
    with pytest.raises(ValueError, match="Pass `graph=`"):
        model.predict(x[:5])
    assert model.predict(x[:5], sp.csr_array((5, 5))).shape == (5,)
    assert model.score(x, y, graph=graph) == model.score(x, y)
