"""Whole solves on the CPU, each in one call of compiled code: raw tensors in, raw tensors out.

For `equilibrium` with the map of `diffusion`; what is computed is defined there, and the general loops stay the
reference. See decision 0011.
"""

import contextlib
import contextvars
import ctypes
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gind.kernels.op import has_numba, implementation

__all__ = ["Ending", "Layer", "address", "call", "is_small", "switched_off", "worthwhile"]

# (nodes + edges) x channels. One call is faster at all sizes measured if the general loops have one thread too; above
# this limit by less than the factor of 2 that a second thread can bring them. See decision 0011.
_SMALL = 2**19
_NAMES = {torch.float32: "float32", torch.float64: "float64"}
_off: contextvars.ContextVar[bool] = contextvars.ContextVar("off", default=False)


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Within, every solve takes the general path."""
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


def worthwhile(nodes: int, edges: int, flux_channels: int, channels: int) -> bool:
    """Whether a solve of this size should be one call, where it can."""
    alone = torch.get_num_threads() == 1
    return not _off.get() and (alone or is_small(nodes, edges, flux_channels, channels)) and has_numba()


def is_small(nodes: int, edges: int, flux_channels: int, channels: int) -> bool:
    """Whether calling operators takes about as long as they do."""
    return (nodes + edges) * max(flux_channels, channels) <= _SMALL


@functools.cache
def address(name: str, dtype: torch.dtype) -> int:
    """Of an edge loop in C such as flux_tanh; 0 if numba serves."""
    if implementation("cpu") != "gind.kernels.compiled":
        return 0
    function = getattr(importlib.import_module("gind.kernels.native.build").library(), f"{name}_{_NAMES[dtype]}")
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def call(name: str, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """kernel(*arguments), which torch.profiler sees as gind::name."""
    if not torch.autograd.profiler._is_profiler_enabled:  # a range takes tens of microseconds, even if nobody looks
        return kernel(*arguments)
    with torch.profiler.record_function(f"gind::{name}"):
        return kernel(*arguments)


class Ending(NamedTuple):
    """Where a descent ended: the point, its residuals (problems,), the steps, and a name of `equilibrium.Status`."""

    z: Tensor
    absolute: Tensor
    relative: Tensor
    steps: int
    status: str


@final
class Layer:
    """The constants of a map f(z) = -m ⊙ (s ω Gᵀwσ(G g(s zKᵀ + C)) K), as the compiled code takes them.

    Channels are padded with zeros to whole panels of the matrix product; zeros stay zeros in every step. Where a node
    has several ends, s and C have a row for each, K has that many blocks of rows, and `edges` join ends.
    """

    def __init__(
        self,
        K: Tensor,
        C: Tensor,
        s: Tensor,
        gains: tuple[Tensor | None, Tensor | None],
        mask: Tensor | None,
        edges: tuple[Tensor, Tensor, Tensor],
        batch: Tensor | None,
        problems: int,
        activation: str = "tanh",
    ) -> None:
        from gind.kernels import solves  # here: it needs numba

        self._solves, self.activation = solves, activation
        self.lanes = solves.PANEL // K.element_size()
        (self.rows, self.channels), self.problems = K.shape, problems
        blocks = self.padded(K.detach(), 1).unflatten(0, (-1, C.shape[1]))
        self.wide = wide = torch.cat([self.padded(block, 0) for block in blocks])
        columns = wide.shape[1]
        nothing = C.new_empty(0, C.shape[1])
        self.constants = (
            self.panels(wide),
            self.panels(wide.T),
            self.padded(C.detach(), 1),
            s.detach().reshape(-1).contiguous(),
            *(nothing if gain is None else self.padded(gain.detach(), 1) for gain in gains),
            C.new_empty(0, columns) if mask is None else self.padded(mask, 1),
            *(tensor.contiguous() for tensor in edges),
            edges[0].new_empty(0) if batch is None else batch.contiguous(),
        )
        self.arrays = tuple(tensor.numpy() for tensor in self.constants)

    def descend(
        self,
        z0: Tensor,
        rates: tuple[Tensor, Tensor],
        heavy: tuple[Tensor, Tensor, Tensor] | None,
        stop: tuple[float, float, int, int],
        allowance: Callable[[Tensor], Tensor],
    ) -> Ending:
        """x' = z + step (f(z) - z), z' = x' + momentum (x' - x), from z0, as `iterate` does.

        `rates` are step and momentum of each problem, `heavy` those to begin with, where momentum is that of z, and how
        many steps they may bring no new minimum of the residual. `stop` is tolerance, aim, steps and patience.
        `allowance` gives the size of rounding errors at a point; it is asked where a residual has stopped falling.
        """
        (place, _), kind = self.loops("flux")
        kernel = functools.partial(call, "solve", self._solves.descend(*kind), place, self.arrays)
        codes = self._solves.CODES
        z = self.padded(z0.detach(), 1).clone()
        x = z.clone()
        tol, aim, max_steps, patience = stop
        count, (first, carried, waits) = len(rates[0]), (*rates, rates[0]) if heavy is None else heavy
        # copies: they change in place where a problem calms down
        step, momentum, *calm = (rate.to(z.dtype, copy=True).numpy() for rate in (first, carried, *rates))
        pace = (step, momentum, torch.full((count,), heavy is not None).numpy(), *calm, waits.contiguous().numpy())
        rest = (pace, (tol, aim), torch.finfo(z.dtype).eps)
        absolute, relative, start, best, since, allowed = torch.zeros(6, count, dtype=torch.float64).unbind()
        done, reached = torch.zeros(2, count, dtype=torch.bool).unbind()
        start.fill_(-1)
        best.fill_(torch.inf)
        allowed.fill_(torch.nan)
        problems = tuple(a.numpy() for a in (absolute, relative, start, best, since, done, reached, allowed))
        # where each is best within its tolerance, its residuals there, and when it came within; see `iterate`
        gap, share = np.full((2, count), np.inf)
        kept = (np.empty_like(z.numpy()), gap, share, np.zeros(count, np.int64), np.zeros(count, np.bool_))
        code, steps = kernel(z.numpy(), x.numpy(), *rest, 0, max_steps, patience, problems, kept)
        while codes[code] == "ASK":
            allowed.copy_(allowance(self.narrow(z)))
            code, steps = kernel(z.numpy(), x.numpy(), *rest, steps, max_steps, patience, problems, kept)
        return Ending(self.narrow(z), absolute, relative, steps, codes[code])

    def product(self, y: Tensor, u: Tensor) -> Tensor:
        """The Hessian at potentials y (with gain) times u."""
        x = torch.zeros_like(wide := self.padded(u.detach(), 1))
        self._run(y, x, wide, torch.zeros(self.problems, dtype=torch.float64), 0, True)
        return self.narrow(x)

    def conjugate_gradients(self, y: Tensor, rhs: Tensor, target: Tensor, max_steps: int) -> tuple[Tensor, Tensor, int]:
        """x, what is left of rhs, and the number of products, until ‖left‖ ≤ target in each problem."""
        left = self.padded(rhs.detach(), 1).clone()
        x = torch.zeros_like(left)
        steps = self._run(y, x, left, target.square(), max_steps, False)
        return self.narrow(x), self.narrow(left), steps

    def _run(self, y: Tensor, x: Tensor, r: Tensor, target: Tensor, max_steps: int, once: bool) -> int:
        tensors = (self.padded(y, 1), x, r, target)
        (place, _), kind = self.loops("flux_jvp")
        kernel, arrays = self._solves.conjugate_gradients(*kind), (tensor.numpy() for tensor in tensors)
        steps: int = call("solve", kernel, place, self.arrays, *arrays, max_steps, once)
        return steps

    def loops(self, *names: str) -> tuple[tuple[int, ...], tuple[bool, bool]]:
        """Where the edge loops of its σ and then the linear flux are in C, and what a kernel is compiled for.

        That is C or numba, and in numba which σ.
        """
        loops = (*(f"{name}_{self.activation}" for name in names), "flux_identity")
        places = tuple(address(loop, self.constants[3].dtype) for loop in loops)
        in_c = all(places)
        return places, (in_c, not in_c and self.activation == "identity")

    def panels(self, B: Tensor) -> Tensor:
        """(count, rows, width): the columns of a padded matrix in panels, as wide as the machine has use for."""
        widest = self._solves.WIDE // B.element_size()
        width = self.lanes if B.shape[1] % widest else widest
        cut: Tensor = B.unflatten(1, (-1, width)).transpose(0, 1).contiguous()
        return cut

    def padded(self, x: Tensor, dim: int) -> Tensor:
        """x with zeros up to whole panels."""
        short = -x.shape[dim] % self.lanes
        if not short:
            return x.contiguous()
        return F.pad(x, (0, short) if dim == 1 else (0, 0, 0, short))

    def narrow(self, z: Tensor) -> Tensor:
        """Without the zeros."""
        return z[:, : self.channels].contiguous()
