"""How the graphs of an epoch are shared out to batches."""

import math

import torch
from graphs import MODEST
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gind.train import Problem
from gind.train.problem import Part


def sizes(graphs: int, batch_size: int) -> list[int]:
    """Graphs of each batch; every graph must come once."""
    parts = tuple(
        Part(Data(x=torch.tensor([[float(i)]]), edge_index=torch.empty(2, 0, dtype=torch.long)), torch.tensor([0]))
        for i in range(graphs)
    )
    batches = list(Problem("graph", "accuracy", 1, 2, parts, parts).epoch(batch_size))
    seen = torch.cat([batch.data.x for batch in batches]).flatten()
    assert sorted(seen.tolist()) == list(range(graphs))
    return [len(batch.y) for batch in batches]


@MODEST
@given(st.integers(2, 200), st.integers(1, 40))
def test_no_batch_has_less_than_an_eighth_of_the_others(graphs: int, batch_size: int) -> None:
    *whole, last = sizes(graphs, batch_size)
    assert whole == [batch_size] * len(whole)
    assert last < batch_size * 9 / 8
    if whole:
        assert last >= batch_size / 8
    else:
        assert last == graphs


@MODEST
@given(st.integers(2, 200), st.integers(1, 40))
def test_a_rest_of_an_eighth_or_more_is_a_batch_of_its_own(graphs: int, batch_size: int) -> None:
    rest = graphs % batch_size
    if rest == 0 or rest >= batch_size / 8:
        assert len(sizes(graphs, batch_size)) == math.ceil(graphs / batch_size)


def test_a_single_graph_beyond_whole_batches_joins_the_last() -> None:
    assert sizes(65, 32) == [32, 33]
    assert sizes(3, 32) == [3]
    assert sizes(17, 8) == [8, 8, 1]
