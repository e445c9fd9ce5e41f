"""From the table of nodes to ids, features, labels and splits."""

import dataclasses
import re
from collections.abc import Collection, Sequence
from decimal import Decimal

import torch
from torch import Tensor

from gind.datasets.dataset import Split
from gind.datasets.files.table import Place, Table, check_names, is_number, listing, show
from gind.features import compact

__all__ = ["NodeColumns", "features_of", "ids_of", "labels_of", "splits_of"]

_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_INTEGER = re.compile(r"([+-]?\d+)(\.0*)?")


@dataclasses.dataclass(frozen=True)
class NodeColumns:
    """Which columns are not features (a `Schema`)."""

    label: str
    split: str
    require_labels: bool

    def __call__(self, place: Place, names: Sequence[str]) -> Collection[str]:
        """The columns that are text; refused without an id, or without a label where one is needed."""
        if "id" not in names:
            raise place.error(f"expected a column 'id', got {listing(names)}. Is the header missing?")
        check_names(place, names)
        self.check_label(place, names)
        text = {"id", self.label, *self.splits(names)}
        return [name for name in names if name in text]

    def check_label(self, place: Place, names: Collection[str]) -> None:
        """Refuse a table without labels where they are needed."""
        if self.require_labels and self.label not in names:
            raise place.error(f"there is no {self.label!r}, got {listing(names)}. Which of them is the label?")

    def splits(self, names: Collection[str]) -> list[str]:
        """`split`, `split0`, `split1`, ... as far as they are there, in this order."""
        numbered = re.compile(re.escape(self.split) + r"(\d{0,9})")
        found = [(int(match[1] or -1), name) for name in names if (match := numbered.fullmatch(name))]
        return [name for _, name in sorted(found)]


def ids_of(table: Table) -> dict[str, int]:
    """Id to row."""
    ids: dict[str, int] = {}
    for row, name in enumerate(table.text["id"]):
        if not name:
            raise table.place.error("expected the id of a node, but it is empty.", row, "id")
        if (first := ids.setdefault(name, row)) != row:
            where = table.place(first).removeprefix(f"{table.place.source}, ")
            raise table.place.error(f"the id {show(name)} is there twice, first in {where}.", row, "id")
    if not ids:
        raise table.place.error("it has no nodes.")
    return ids


def features_of(table: Table) -> Tensor:
    """`x` (n, d) float32, in the layout that suits it."""
    if not table.numbers.shape[1]:
        raise table.place.error(
            "there are no features, only ids, labels and splits. Add columns of numbers, e.g. the degree of each node."
        )
    return compact(table.numbers)


def labels_of(table: Table, columns: NodeColumns) -> tuple[Tensor, tuple[str, ...]]:
    """`y` (n,), -1 where the label is empty, and the classes: in the order of numbers, else of letters."""
    name = "y" if "y" in table.text else columns.label  # only npz has it as text
    if name not in table.text:
        columns.check_label(table.place, table.text)
    texts = table.text.get(name, [""] * table.num_rows)
    integers = {text: match[1] for text in set(texts) - {""} if (match := _INTEGER.fullmatch(text))}
    if len(integers) == len(set(texts) - {""}):
        # pandas writes integers as 1.0 where one of them is missing
        texts = [integers.get(text, "") for text in texts]
        classes = sorted(set(texts) - {""}, key=lambda text: (Decimal(text), text))  # int() refuses 5000 digits
    else:
        classes = sorted(set(texts) - {""})
    if columns.require_labels and len(classes) < 2:
        raise table.place.error(f"expected at least two classes, got {listing(classes)}.", column=name)
    _check_classes(table.place, texts, classes, name)
    index = {name: number for number, name in enumerate(classes)} | {"": -1}
    return torch.tensor([index[text] for text in texts]), tuple(classes)


def _check_classes(place: Place, texts: list[str], classes: list[str], name: str) -> None:
    if "-1" in classes and "0" in classes:
        advice = "Leave the label of a node without one empty (NaN in npz), or rename the class."
        raise place.error(f"is -1 a class, or no label? {advice}", texts.index("-1"), name)
    for odd in classes:
        if odd.lower() == "nan":
            raise place.error(f"got {show(odd)}. Leave the label of a node without one empty.", texts.index(odd), name)
    fractions = [text for text in classes if not _INTEGER.fullmatch(text)]
    if fractions and all(is_number(text) for text in classes):
        message = f"expected a class (a name or an integer), got {show(fractions[0])}. Regression is not supported."
        raise place.error(message, texts.index(fractions[0]), name)


def splits_of(table: Table, columns: NodeColumns, y: Tensor) -> tuple[Split, ...]:
    """The split of each split column; () where there is none."""
    return tuple(_split(table, name, y.tolist()) for name in columns.splits(table.text))


def _split(table: Table, name: str, y: list[int]) -> Split:
    parts: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for row, text in enumerate(table.text[name]):
        if not text:
            continue
        if text.lower() not in _PARTS:
            raise table.place.error(f"expected train, val, test or nothing, got {show(text)}.", row, name)
        if y[row] < 0:
            raise table.place.error(f"the node is in {show(text)} but has no label. Leave its split empty.", row, name)
        parts[_PARTS[text.lower()]].append(row)
    for part, rows in parts.items():
        if not rows:
            raise table.place.error(f"no node is in {part!r}. Train, val and test need one each.", column=name)
    return Split(**{part: torch.tensor(rows) for part, rows in parts.items()})
