"""NumPy archives: a matrix of features or of edges, and vectors; never unpickled, so they cannot run code."""

import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from gind.datasets.dataset import DataError
from gind.datasets.files.edges import PAIRS
from gind.datasets.files.table import Numbers, Place, Table, check_finite, listing, text_of

__all__ = ["read_npz_edges", "read_npz_nodes"]

Array = npt.NDArray[Any]
_SPARSE = ("data", "indices", "indptr", "shape", "format")  # as scipy.sparse.save_npz writes a CSR matrix


def read_npz_nodes(path: Path, label: str, split: str) -> Table:
    """Features `x` (n x d) or a CSR matrix, and maybe `id`, the label (or `y`) and the split (n, or n x splits)."""
    place = Place(str(path))
    arrays = _load(place, ("x", *_SPARSE, "id", label, "y", split))
    if label in arrays and "y" in arrays and label != "y":
        raise place.error(f"both {label!r} and 'y' are there. Remove one.")
    if ("x" in arrays) == ("data" in arrays):
        raise place.error("expected the features: either an array 'x' or a CSR matrix (scipy.sparse.save_npz).")
    numbers = _dense(place, arrays["x"]) if "x" in arrays else _csr(place, arrays)
    count = numbers.shape[0]
    text = {"id": _text(place, "id", arrays["id"], count) if "id" in arrays else list(map(str, range(count)))}
    if found := arrays.keys() & {label, "y"}:
        name = found.pop()
        text[name] = _text(place, name, arrays[name], count)
    if split in arrays and arrays[split].ndim == 2:
        columns = enumerate(arrays[split].T)
        text |= {f"{split}{index}": _text(place, split, column, count) for index, column in columns}
    elif split in arrays:
        text[split] = _text(place, split, arrays[split], count)
    return Table(place, text, (), numbers)


def read_npz_edges(path: Path) -> Table:
    """`source` and `target` with ids of nodes; or `edge_index` (2 x E) or a CSR matrix, with rows of the nodes."""
    place = Place(str(path))
    arrays = _load(place, ("edge_index", *_SPARSE, *(name for pair in PAIRS for name in pair), "weight"))
    pairs = [pair for pair in PAIRS if arrays.keys() >= set(pair)]
    if ("edge_index" in arrays) + ("data" in arrays) + len(pairs) != 1:
        raise place.error(
            "expected the edges in one form: 'source' and 'target', 'edge_index', or a CSR matrix "
            f"(scipy.sparse.save_npz); got {listing(arrays)}."
        )
    if pairs:
        pair, ends = pairs[0], [arrays[name] for name in pairs[0]]
    else:
        pair, ends = ("source", "target"), _rows_of_edges(place, arrays)
    count = ends[0].size
    text = {name: _text(place, name, end, count) for name, end in zip(pair, ends, strict=True)}
    if "weight" not in arrays:
        return Table(place, text, (), np.empty((count, 0), np.float32), by_row=not pairs)
    if arrays["weight"].shape != (count,):
        raise place.error(f"expected one weight for each of the {count} edges, got shape {arrays['weight'].shape}.")
    weight = _float32(place, "weight", arrays["weight"])[:, None]
    check_finite(place, weight, ("weight",))
    return Table(place, text, ("weight",), weight, by_row=not pairs)


def _rows_of_edges(place: Place, arrays: dict[str, Array]) -> list[Array]:
    if "data" in arrays:
        if "weight" in arrays:
            raise place.error("the entries of a CSR matrix are the weights. Remove 'weight'.")
        matrix = _csr(place, arrays)
        if matrix.shape[0] != matrix.shape[1]:
            raise place.error(f"an adjacency matrix is square, got shape {matrix.shape}.")
        if (matrix.data != 1).any():
            arrays["weight"] = matrix.data
        return [(entries := matrix.tocoo()).row, entries.col]
    index = arrays["edge_index"]
    if index.ndim != 2 or index.shape[0] != 2:
        hint = " Transpose it." if index.ndim == 2 and index.shape[1] == 2 else ""
        raise place.error(f"expected shape (2, edges), got {index.shape}.{hint}", column="edge_index")
    if index.dtype.kind not in "iu":
        raise place.error(f"expected integers (rows of the nodes), got {index.dtype}.", column="edge_index")
    return list(index)


def _load(place: Place, known: Collection[str]) -> dict[str, Array]:
    try:
        # opened here: numpy leaves a damaged file open
        with open(place.source, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if unknown := [name for name in archive.files if name not in known]:
                raise place.error(f"not one of the arrays that are read: {', '.join(known)}.", column=unknown[0])
            return {name: _member(place, archive, name) for name in archive.files}
    except DataError:
        raise
    # TypeError, AttributeError: a lone npy array is no context; RuntimeError: encrypted, or packed in an unknown way
    except (ValueError, TypeError, AttributeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error):
        raise place.error("not an npz archive, or damaged. Write it with numpy.savez.") from None


def _member(place: Place, archive: Any, name: str) -> Array:
    try:
        array: Array = archive[name]
    except ValueError as error:
        if "Object arrays" in str(error):
            advice = "Save it as strings or numbers, e.g. with .astype(str)."
            raise place.error(f"it holds Python objects, which could run code. {advice}", column=name) from None
        raise
    return array


def _csr(place: Place, arrays: dict[str, Array]) -> scipy.sparse.csr_matrix:
    if missing := [name for name in _SPARSE[:4] if name not in arrays]:
        raise place.error(f"of a CSR matrix {listing(missing)} is missing. Write it with scipy.sparse.save_npz.")
    if "format" in arrays and "csr" not in str(arrays["format"]):
        raise place.error(f"expected a CSR matrix, got {arrays['format']}. Save matrix.tocsr().")
    data = _float32(place, "data", arrays["data"])
    try:
        shape = tuple(map(int, arrays["shape"]))
        matrix = scipy.sparse.csr_matrix((data, arrays["indices"], arrays["indptr"]), shape=shape)
        matrix.check_format(full_check=True)  # indices out of range would be read outside of memory
    except (ValueError, TypeError, IndexError) as error:
        raise place.error(f"not a CSR matrix ({error}). Write it with scipy.sparse.save_npz.") from None
    entries = matrix.tocoo()
    if (bad := np.flatnonzero(~np.isfinite(entries.data))).size:
        row, column, value = (part[bad[0]] for part in (entries.row, entries.col, entries.data))
        raise place.error(f"expected a finite number in the range of float32, got {value}.", row, f"[:, {column}]")
    return matrix


def _dense(place: Place, x: Array) -> Numbers:
    if x.ndim != 2:
        raise place.error(f"expected shape (nodes, features), got {x.shape}.", column="x")
    numbers = _float32(place, "x", x)
    check_finite(place, numbers, [f"x[:, {index}]" for index in range(x.shape[1])])
    return numbers


def _float32(place: Place, name: str, array: Array) -> npt.NDArray[np.float32]:
    if array.dtype.kind not in "biuf":
        raise place.error(f"expected numbers, got {array.dtype}. Encode text as columns of 0 and 1.", column=name)
    with np.errstate(over="ignore"):  # what is too large is refused as infinite
        return array.astype(np.float32)


def _text(place: Place, name: str, array: Array, count: int) -> list[str]:
    if array.dtype.kind not in "biufU":
        raise place.error(f"expected strings or integers, got {array.dtype}. Use .astype(str).", column=name)
    if array.shape != (count,):
        raise place.error(f"expected one entry for each of {count} rows, got shape {array.shape}.", column=name)
    return text_of(array.tolist())
