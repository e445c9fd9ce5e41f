"""From the table of edges to `edge_index` and `edge_weight`."""

import difflib
import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gind.datasets.dataset import DataError
from gind.datasets.files.table import Place, Table, check_names, listing, show

__all__ = ["PAIRS", "both_directions", "edge_columns", "edges_of"]

PAIRS = (("source", "target"), ("src", "dst"), ("from", "to"))
_SEARCHED = 20_000  # ids among which the nearest is looked for: more take seconds


def edge_columns(place: Place, names: Sequence[str]) -> Collection[str]:
    """The two columns with ids (a `Schema`)."""
    pairs = [pair for pair in PAIRS if set(pair) <= set(names)]
    if not pairs:
        raise place.error(
            "expected the columns source,target (or src,dst or from,to) and maybe weight, "
            f"got {listing(names)}. Is the header missing?"
        )
    check_names(place, names)
    for name in names:
        if name not in (*pairs[0], "weight"):
            advice = "Rename it or leave it out."
            raise place.error(f"edges have {', '.join(pairs[0])} and maybe weight. {advice}", column=name)
    return pairs[0]


def edges_of(table: Table, ids: Mapping[str, int]) -> tuple[Tensor, Tensor | None]:
    """`edge_index` (2, E) in the order of the file, and `edge_weight` (E,) float32 where there is one."""
    if not table.num_rows:
        raise table.place.error("it has no edges. (Is it meant? Write one self-loop, it carries no flux.)")
    if table.by_row:
        _check_countable(table.place, ids)
    rows = {str(row): row for row in range(len(ids))} if table.by_row else ids
    pair = next(pair for pair in PAIRS if pair[0] in table.text)
    ends = np.stack([_lookup(table, name, rows) for name in pair])
    if not table.names:
        return torch.from_numpy(ends), None
    weight: npt.NDArray[np.float32] = table.numbers[:, 0]
    if (negative := np.flatnonzero(weight < 0)).size:
        row = int(negative[0])
        raise table.place.error(f"a weight must not be negative, got {weight[row]}.", row, "weight")
    return torch.from_numpy(ends), torch.from_numpy(weight.copy())


def both_directions(edge_index: Tensor, weight: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """The edges, then the reverse of each whose reverse is not among them."""
    source, target = edge_index.numpy()
    lone = ~np.isin(target * num_nodes + source, source * num_nodes + target)
    added = torch.from_numpy(np.flatnonzero(lone))
    whole = torch.cat([edge_index, edge_index.flip(0)[:, added]], 1)
    return whole, None if weight is None else torch.cat([weight, weight[added]])


def _lookup(table: Table, name: str, rows: Mapping[str, int]) -> npt.NDArray[np.int64]:
    column = table.text[name]
    found = np.fromiter((rows.get(text, -1) for text in column), np.int64, len(column))
    if (missing := np.flatnonzero(found < 0)).size:
        raise _dangling(table, int(missing[0]), name, rows)
    return found


def _dangling(table: Table, row: int, name: str, rows: Mapping[str, int]) -> DataError:
    text = table.text[name][row]
    if not text:
        return table.place.error("expected the id of a node, but it is empty.", row, name)
    if table.by_row:
        return table.place.error(
            f"there is no node {text}: the rows of the nodes are 0 to {len(rows) - 1}. "
            "(For ids use arrays 'source' and 'target'.)",
            row,
            name,
        )
    near = difflib.get_close_matches(text, itertools.islice(rows, _SEARCHED), 1, 0.75)
    hint = f" Is it {show(near[0])}?" if near else " Add it to the nodes, or remove the edge."
    return table.place.error(f"there is no node {show(text)}.{hint}", row, name)


def _check_countable(place: Place, ids: Mapping[str, int]) -> None:
    """Refuse row numbers where ids are numbers too, but other ones: which of both is meant cannot be seen."""
    if any(text != str(row) for text, row in ids.items()) and all(text.isdecimal() for text in ids):
        raise place.error(
            "'edge_index' or a matrix counts the rows of the nodes, but the nodes have numbers of their own as ids. "
            "Write the edges as 'source' and 'target' with ids, or the nodes without 'id'."
        )
