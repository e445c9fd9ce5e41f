"""CSV files: UTF-8 with a header, separated by comma, semicolon or tab."""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from gind.datasets.dataset import DataError
from gind.datasets.files.table import Builder, Place, Schema, Table

__all__ = ["read_delimited"]


def read_delimited(path: Path, schema: Schema) -> Table:
    """The table of a CSV file; what separates its cells is what its header has most of."""
    try:
        # newline="": a line break inside quotes is part of the cell; sig: Excel begins its files with a BOM
        with open(path, newline="", encoding="utf-8-sig") as file:
            return _read(file, Place(str(path)), schema)
    except UnicodeDecodeError:
        raise DataError(f"{path}, line {_undecodable_line(path)}: not UTF-8. Save the file as UTF-8.") from None


def _read(file: TextIO, place: Place, schema: Schema) -> Table:
    first = file.readline()
    if not first.strip():
        raise place.error("expected a header with the names of the columns in the first line, it is empty.")
    unquoted = re.sub(r'"[^"]*"', "", first)
    reader = csv.reader(
        _without_nul(itertools.chain([first], file), place),
        delimiter=max(",\t;", key=unquoted.count),
        skipinitialspace=True,
        strict=True,  # else an open quote swallows the rest of the file
    )
    rows = _numbered(reader, place)
    _, names = next(rows)
    builder = Builder(place, [name.strip() for name in names], schema)
    width = len(names)
    for line, cells in rows:
        if len(cells) != width:
            raise DataError(
                f"{place()}, line {line}: it has {len(cells)} cells, but the header has {width}. "
                "Put cells that hold the separator or a line break in double quotes."
            )
        builder.add(line, cells)
    return builder.table()


def _numbered(reader: Any, place: Place) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with the line each begins in."""
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{place()}, line {line}: not a row of a CSV file ({error}). Is a quote missing?") from None


def _without_nul(lines: Iterable[str], place: Place) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise DataError(f"{place()}, line {number}: it holds a NUL byte. Is this a text file? Save it as UTF-8.")
        yield line


def _undecodable_line(path: Path) -> int:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1
