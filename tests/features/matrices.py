"""Generated sparse features for the tests."""

import torch
from graphs import values
from hypothesis import strategies as st
from torch import Tensor


def features(rows: int, columns: int, density: float, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    """Dense; row 1 is empty."""
    x = values(seed, rows, columns, dtype=dtype)
    mask = torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) < density
    mask[1:2] = False
    return x * mask


@st.composite
def matrices(draw: st.DrawFn, dtype: torch.dtype = torch.float64) -> Tensor:
    """CSR with empty rows and columns, no rows, no entries, stored zeros, and either kind of indices."""
    rows, columns = draw(st.integers(0, 8)), draw(st.integers(1, 8))
    pattern = [sorted(draw(st.sets(st.integers(0, columns - 1)))) for _ in range(rows)]
    index = draw(st.sampled_from([torch.int32, torch.int64]))
    crow = torch.tensor([0, *map(len, pattern)]).cumsum(0).to(index)
    col = torch.tensor([j for row in pattern for j in row], dtype=index)
    entries = values(draw(st.integers(0, 99)), len(col), dtype=dtype)
    if len(col) > 0 and draw(st.booleans()):
        entries[0] = 0
    return torch.sparse_csr_tensor(crow, col, entries, (rows, columns), check_invariants=True)
