"""Parquet files, through pyarrow where it is installed."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gind.datasets.dataset import DataError
from gind.datasets.files.table import Place, Schema, Table, check_finite, text_of

__all__ = ["read_parquet"]


def read_parquet(path: Path, schema: Schema) -> Table:
    """The table of a parquet file."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise DataError(f"{path}: parquet needs pyarrow. Install it: pip install pyarrow") from None
    try:
        # not read_table: it takes names of directories like "split=1" for columns
        content = parquet.ParquetFile(path).read()
    except (arrow.ArrowException, OSError) as error:  # OSError: damaged
        raise DataError(f"{path}: not a parquet file that pyarrow reads ({_first_line(error)}).") from None
    place = Place(str(path))
    given = list(content.schema.names)
    text = schema(place, given)
    names = tuple(name for name in given if name not in text)
    columns = [_numbers(place, name, content[name], arrow.types) for name in names]
    numbers = np.stack(columns, 1) if columns else np.empty((len(content), 0), np.float32)
    check_finite(place, numbers, names)
    return Table(place, {name: _text(place, name, content[name], arrow.types) for name in text}, names, numbers)


def _numbers(place: Place, name: str, column: Any, types: Any) -> npt.NDArray[np.float32]:
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        advice = "Encode text as columns of 0 and 1, a vector as one column per entry."
        raise place.error(f"expected numbers, got the type {kind}. {advice}", column=name)
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise place.error("expected a number, but it is empty. Fill it in, or leave the column out.", row, name)
    with np.errstate(over="ignore"):  # what is too large is refused as infinite
        numbers: npt.NDArray[np.float32] = column.to_numpy().astype(np.float32)
    return numbers


def _text(place: Place, name: str, column: Any, types: Any) -> list[str]:
    plain = column.cast(column.type.value_type) if types.is_dictionary(column.type) else column
    readable = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_boolean)
    if not any(check(plain.type) for check in (*readable, types.is_null)):
        raise place.error(f"expected strings or integers, got the type {column.type}. Cast it.", column=name)
    return text_of(plain.to_pylist())


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
