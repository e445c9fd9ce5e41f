"""Inner products: how the rows of z split into independent problems that are solved together."""

import abc
import dataclasses
from typing import final

import torch
from torch import Tensor

__all__ = ["Blocks", "InnerProduct", "Whole"]


class InnerProduct(abc.ABC):
    """⟨a, b⟩ per problem. Residuals, step sizes and stopping are all taken from it, problem by problem."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """Number of problems."""

    @abc.abstractmethod
    def collect(self, rows: Tensor) -> Tensor:
        """(count,) sums of one float64 number per row of z."""

    @abc.abstractmethod
    def spread(self, values: Tensor, like: Tensor) -> Tensor:
        """One value per problem, in the dtype of `like` (bool stays bool), shaped to multiply the rows of `like`."""

    @final
    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """(count,) float64: ⟨a, b⟩, each row summed in the precision of a, the rows in float64."""
        rows = torch.linalg.vecdot(a.flatten(1), b.flatten(1)) if a.dim() > 1 else a * b
        return self.collect(rows.double())

    @final
    def norm(self, a: Tensor) -> Tensor:
        """(count,) float64: ‖a‖, without overflow for large entries."""
        rows = torch.linalg.vector_norm(a.flatten(1), dim=1, dtype=torch.float64) if a.dim() > 1 else a
        return self.collect(rows.double().square()).sqrt()


@final
@dataclasses.dataclass(frozen=True)
class Whole(InnerProduct):
    """One problem: all rows."""

    @property
    def count(self) -> int:
        """One."""
        return 1

    def collect(self, rows: Tensor) -> Tensor:
        """The sum of all rows."""
        return rows.sum().reshape(1)

    def spread(self, values: Tensor, like: Tensor) -> Tensor:
        """The one value, as a scalar."""
        value = values.reshape(())
        return value if value.dtype == torch.bool else value.to(like.dtype)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Blocks(InnerProduct):
    """Row i belongs to problem index[i] of `size` many."""

    index: Tensor
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.index, Tensor) or self.index.dtype != torch.int64 or self.index.dim() != 1:
            raise TypeError("`index` of Blocks must be an int64 tensor with the problem of each row.")
        if self.index.numel() and not (int(self.index.min()) >= 0 and int(self.index.max()) < self.size):
            raise ValueError(
                f"`index` of Blocks must lie in 0 ... {self.size - 1}, got {int(self.index.min())} ... "
                f"{int(self.index.max())}. Pass a larger `size`."
            )

    @property
    def count(self) -> int:
        """As given."""
        return self.size

    def collect(self, rows: Tensor) -> Tensor:
        """Sums by problem."""
        return rows.new_zeros(self.size).index_add(0, self.index, rows)

    def spread(self, values: Tensor, like: Tensor) -> Tensor:
        """Each row gets the value of its problem."""
        rows = values[self.index].reshape(-1, *[1] * (like.dim() - 1))
        return rows if rows.dtype == torch.bool else rows.to(like.dtype)
