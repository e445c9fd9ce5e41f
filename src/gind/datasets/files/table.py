"""`Table`: what every format is read into, columns of text and a matrix of numbers; `Place`: where an error is."""

import dataclasses
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from gind.datasets.dataset import DataError

__all__ = [
    "Builder",
    "Numbers",
    "Place",
    "Schema",
    "Table",
    "check_finite",
    "check_names",
    "is_number",
    "listing",
    "show",
    "text_of",
]

Numbers: TypeAlias = npt.NDArray[np.float32] | scipy.sparse.csr_matrix
_TRUTH = {"true": 1.0, "false": 0.0}
_INDEX_OF_PANDAS = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?")  # it numbers the rows: no feature


def show(value: str) -> str:
    """`value` in quotes on one line, without its end where it is long."""
    return repr(value if len(value) <= 60 else value[:57] + "...")


def listing(names: Iterable[str], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    shown = [show(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more if shown else "none"


@dataclasses.dataclass(frozen=True)
class Place:
    """Names a cell as the user finds it: by line in a text file, by row (from 0) in a binary one."""

    source: str
    lines: Sequence[int] | None = None
    """the line of each row, None where the file has no lines"""
    word: str = "column"

    def __call__(self, row: int | None = None, column: str | None = None) -> str:
        """The file, the line or row, and the column, as far as they are known."""
        parts = [self.source]
        if row is not None:
            parts.append(f"row {row} (from 0)" if self.lines is None else f"line {self.lines[row]}")
        if column is not None:
            parts.append(f"{self.word} {show(column)}")
        return ", ".join(parts)

    def error(self, message: str, row: int | None = None, column: str | None = None) -> DataError:
        """The error to raise: its place, then `message`."""
        return DataError(f"{self(row, column)}: {message}")


Schema = Callable[[Place, Sequence[str]], Collection[str]]
"""Refuses the names of the columns, or tells which of them are text; the others are numbers."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of text ("" where empty, no space around) and of finite numbers."""

    place: Place
    text: dict[str, list[str]]
    names: tuple[str, ...]
    """of the columns of `numbers`; () for the unnamed columns of an npz matrix"""
    numbers: Numbers
    """(rows, columns)"""
    by_row: bool = False
    """edges only: source and target are row numbers of the nodes, not ids"""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.numbers.shape[0])


class Builder:
    """Collects the rows of a text file."""

    def __init__(self, place: Place, names: Sequence[str], schema: Schema) -> None:
        text = schema(place, names)
        self._lines = array("q")
        self._values = array("f")
        self.place = dataclasses.replace(place, lines=self._lines)
        self._names = tuple(names)
        self._text: dict[int, list[str]] = {index: [] for index, name in enumerate(names) if name in text}
        self._numbers = [index for index, name in enumerate(names) if name not in text]

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Take the row that begins in `line`."""
        self._lines.append(line)
        for index, column in self._text.items():
            column.append(cells[index].strip())
        if self._numbers:
            picked = [cells[index] for index in self._numbers]
            try:
                row = list(map(float, picked))
                exact = "_" not in "".join(picked)  # float() also takes "1_000", which only Python calls a number
            except ValueError:
                exact = False
            self._values.fromlist(row if exact else [self._number(index, cells[index]) for index in self._numbers])

    def _number(self, index: int, cell: str) -> float:
        text = cell.strip()
        place = len(self._lines) - 1, self._names[index]
        if not text:
            raise self.place.error("expected a number, but it is empty. Fill it in, or leave the column out.", *place)
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        if is_number(text):
            return float(text)
        decimal_comma = re.fullmatch(r"[+-]?\d+,\d+", text)
        advice = "Write it with a decimal point." if decimal_comma else "Encode text as columns of 0 and 1."
        raise self.place.error(f"expected a number, got {show(cell)}. {advice}", *place)

    def table(self) -> Table:
        """All rows."""
        names = tuple(self._names[index] for index in self._numbers)
        numbers = np.frombuffer(self._values, np.float32) if self._values else np.empty(0, np.float32)
        numbers = numbers.reshape(len(self._lines), len(names))
        check_finite(self.place, numbers, names)
        text = {self._names[index]: column for index, column in self._text.items()}
        return Table(self.place, text, names, numbers)


def check_finite(place: Place, numbers: npt.NDArray[np.float32], names: Sequence[str]) -> None:
    """Refuse NaN and what is infinite in float32."""
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        value = numbers[row, column]
        raise place.error(f"expected a finite number in the range of float32, got {value}.", row, names[column])


def check_names(place: Place, names: Sequence[str]) -> None:
    """Refuse columns without a name, and two of one name."""
    seen = set()
    for name in names:
        if _INDEX_OF_PANDAS.fullmatch(name):
            raise place.error("an index of pandas or no name. Save with index=False, or name the column.", column=name)
        if name in seen:
            raise place.error("two columns have this name. Rename or remove one.", column=name)
        seen.add(name)


def is_number(text: str) -> bool:
    """Whether `text` is a number in any language, not only in Python."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def text_of(values: Iterable[object]) -> list[str]:
    """The cells of a binary file as a text file would hold them: None and NaN are empty, 3.0 is 3."""

    def text(value: object) -> str:
        if isinstance(value, float):
            return "" if value != value else str(int(value)) if value.is_integer() else repr(value)
        return "" if value is None else str(value).strip()

    return list(map(text, values))
