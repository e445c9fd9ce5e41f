"""Features from files: sparse where that is smaller."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["SPARSE_BELOW", "compact", "csr"]

SPARSE_BELOW = 0.2
"""density below which features are kept as CSR: index and value take less room than the zeros"""


def csr(start: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A checked CSR matrix of rows start[i] ... start[i + 1] - 1."""
    with warnings.catch_warnings():
        # torch warns once that CSR is in beta and that checks may be off: no news to users, and we ask for the checks
        warnings.filterwarnings("ignore", "Sparse", UserWarning)
        return torch.sparse_csr_tensor(start, columns, values, shape, check_invariants=True)


def compact(x: Tensor | NDArray[Any] | scipy.sparse.spmatrix, *, words: bool = True) -> Tensor:
    """float32 features: as CSR if they are `words` (many zeros) and less than 20 % is not zero, else dense."""
    given: Any = x.numpy() if isinstance(x, Tensor) else x
    sparse = scipy.sparse.issparse(given)
    filled = given.count_nonzero() if sparse else np.count_nonzero(given)
    if not words or filled >= SPARSE_BELOW * given.shape[0] * given.shape[1]:
        return torch.from_numpy((given.toarray() if sparse else given).astype(np.float32))
    matrix = scipy.sparse.csr_matrix(given, dtype=np.float32)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    start, columns = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return csr(start, columns, torch.from_numpy(matrix.data), matrix.shape)
