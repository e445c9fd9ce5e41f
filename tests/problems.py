"""Maps with known fixed points. A maker rounds its parameters to the dtype it is given, then solves in float64."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gind.equilibrium import Blocks, Contraction, Energy, InnerProduct, Whole
from gind.equilibrium.energy import Map

F64 = torch.float64


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A map, a start, and the answer in float64, correct to `slack` in norm."""

    fn: Map
    z0: Tensor
    exact: Tensor
    slack: float
    inner: InnerProduct = dataclasses.field(default_factory=Whole)

    def distance(self, z: Tensor) -> Tensor:
        return self.inner.norm(z.detach().double() - self.exact)


Maker = Callable[[torch.dtype], Case]


class Phi(NamedTuple):
    """A convex φ with φ'' in [0, 1]; φ'(v)/v is the curvature of the parabola above φ that touches it at ±v."""

    value: Map
    sigma: Map
    slope: Map
    secant: Map


SQUARE = Phi(lambda v: v.square() / 2, lambda v: v, torch.ones_like, torch.ones_like)
LOG_COSH = Phi(
    lambda v: torch.logaddexp(v, -v) - math.log(2),
    torch.tanh,
    lambda v: 1 - v.tanh().square(),
    lambda v: v.tanh() / v.where(v != 0, 1.0) + (v == 0),
)


def mirror(u: Tensor) -> Tensor:
    """The projection on what reads the same from below."""
    return (u + u.flip(0)) / 2


@dataclasses.dataclass(frozen=True, eq=False)
class Ridge(Energy):
    """E(z) = ½‖z‖² + Σ φ(Mz + c) on the range of `subspace`: f(z) = -P Mᵀ φ'(Mz + c), L = 1 + ‖M‖²."""

    M: Tensor
    c: Tensor
    phi: Phi = LOG_COSH
    subspace: Map = torch.positive  # everywhere

    def __call__(self, z: Tensor) -> Tensor:
        return self.project(-self.M.mT @ self.phi.sigma(self.M @ z + self.c))

    def value(self, z: Tensor) -> Tensor:
        terms = self.phi.value(self.M @ z + self.c)
        return (z.double().square().sum() / 2 + terms.double().sum()).reshape(1)

    def hessian(self, z: Tensor) -> Map:
        return self._second_order(self.phi.slope(self.M @ z + self.c))

    def majorizer(self, z: Tensor) -> Map:
        return self._second_order(self.phi.secant(self.M @ z + self.c))

    def _second_order(self, curvature: Tensor) -> Map:
        return lambda u: u + self.project(self.M.mT @ (curvature * (self.M @ u)))

    @functools.cached_property
    def smoothness(self) -> Tensor:
        norm = float(torch.linalg.matrix_norm(self.M.detach().double(), 2))
        return torch.tensor([1 + norm**2], dtype=F64)

    def project(self, u: Tensor) -> Tensor:
        return self.subspace(u)

    def rounding(self, z: Tensor) -> Tensor:
        """The textbook bound: a sum of n products is off by at most n unit roundoffs of the sum of their sizes."""
        arrays = (z, self.M, self.c, self.phi.sigma(self.M @ z + self.c))
        size_z, size_M, size_c, flux = (float(torch.linalg.vector_norm(a.double())) for a in arrays)
        inside = (self.M.shape[1] + 1) * (size_M * size_z + size_c) + 4 * flux
        outside = (self.M.shape[0] + 2) * size_M * flux + 2 * size_z
        return torch.finfo(z.dtype).eps / 2 * ((self.smoothness - 1).sqrt() * inside + outside)


class Batch:
    """Several maps side by side: row i belongs to part index[i]."""

    def __init__(self, parts: Sequence[Map], index: Tensor) -> None:
        self.parts, self.index = parts, index
        self.order = torch.argsort(index, stable=True)
        self.sizes = torch.bincount(index, minlength=len(parts)).tolist()

    def split(self, z: Tensor) -> list[Tensor]:
        return list(torch.split(z[self.order], self.sizes))

    def join(self, rows: Sequence[Tensor]) -> Tensor:
        return torch.cat([*rows])[torch.argsort(self.order)]

    def __call__(self, z: Tensor) -> Tensor:
        return self.join([part(rows) for part, rows in zip(self.parts, self.split(z), strict=True)])


class EnergyBatch(Batch, Energy):
    """Several energies side by side."""

    parts: Sequence[Ridge]

    def _pairs(self, z: Tensor) -> list[tuple[Ridge, Tensor]]:
        return list(zip(self.parts, self.split(z), strict=True))

    def value(self, z: Tensor) -> Tensor:
        return torch.cat([part.value(rows) for part, rows in self._pairs(z)])

    def hessian(self, z: Tensor) -> Map:
        return Batch([part.hessian(rows) for part, rows in self._pairs(z)], self.index)

    def majorizer(self, z: Tensor) -> Map:
        return Batch([part.majorizer(rows) for part, rows in self._pairs(z)], self.index)

    @property
    def smoothness(self) -> Tensor:
        return torch.cat([part.smoothness for part in self.parts])

    def project(self, u: Tensor) -> Tensor:
        return self.join([part.project(rows) for part, rows in self._pairs(u)])

    def rounding(self, z: Tensor) -> Tensor:
        return torch.cat([part.rounding(rows) for part, rows in self._pairs(z)])


def random(*shape: int, seed: int = 0, norm: float | None = None) -> Tensor:
    """Standard normal, float64; a matrix can be scaled to a spectral norm."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)
    return values if norm is None else values * float(norm / torch.linalg.matrix_norm(values, 2))


def energy_case(energy: Ridge, shape: Sequence[int]) -> Case:
    """Damped Newton steps in float64, with the dense derivatives that autograd takes from E alone."""
    double = dataclasses.replace(energy, M=energy.M.detach().double(), c=energy.c.detach().double())
    units = torch.eye(math.prod(shape), dtype=F64).reshape(-1, *shape)
    values, vectors = torch.linalg.eigh(torch.stack([double.project(u).flatten() for u in units]))
    basis: Tensor = vectors[:, values > 0.5]

    def value(y: Tensor) -> Tensor:
        return double.value((basis @ y).reshape(shape)).squeeze()

    y = torch.zeros(basis.shape[1], dtype=F64)
    for _ in range(100):
        y = y.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(value(y), y, create_graph=True)
        hessian = torch.stack([torch.autograd.grad(g, y, retain_graph=True)[0] for g in gradient])
        step = -torch.linalg.solve(hessian, gradient.detach())
        while step.norm() > 1e-9 and value(y + step) > value(y):
            step = step / 2
        y = y + step
        if step.norm() <= 1e-14 * (1 + y.norm()):
            break
    exact = (basis @ y.detach()).reshape(*shape)
    slack = float((exact - double(exact)).norm() + double.rounding(exact))
    return Case(energy, torch.zeros(*shape, dtype=energy.M.dtype), exact, slack)


@functools.cache
def quadratic(dtype: torch.dtype, smoothness: float = 20.0, n: int = 6) -> Case:
    """Hessian eigenvalues from 1 to L, evenly on a log scale."""
    spectrum = torch.logspace(0, math.log10(smoothness), n, dtype=F64)
    M = (spectrum - 1).sqrt()[:, None] * torch.linalg.qr(random(n, n)).Q
    return energy_case(Ridge(M.to(dtype), random(n, 2, seed=1).to(dtype), SQUARE), (n, 2))


@functools.cache
def log_cosh(dtype: torch.dtype, norm: float = 4.0, n: int = 5, subspace: Map = torch.positive) -> Case:
    """More terms than unknowns."""
    M, c = random(n + 3, n, norm=norm), random(n + 3, 2, seed=1)
    return energy_case(Ridge(M.to(dtype), c.to(dtype), subspace=subspace), (n, 2))


def mirrored(dtype: torch.dtype) -> Case:
    """An energy on a subspace that is no set of coordinates."""
    return log_cosh(dtype, subspace=mirror)


def zero(dtype: torch.dtype) -> Case:
    return energy_case(Ridge(random(4, 3).to(dtype), torch.zeros(4, 2, dtype=dtype)), (3, 2))


def together(cases: Sequence[Case], seed: int = 0) -> Case:
    """Energies as one batch whose rows are shuffled; the rows of one part keep their order."""
    owner = torch.cat([torch.full((len(case.z0),), i) for i, case in enumerate(cases)])
    index = owner[torch.randperm(len(owner), generator=torch.Generator().manual_seed(seed))]
    energy = EnergyBatch([case.fn for case in cases if isinstance(case.fn, Ridge)], index)
    z0, exact = energy.join([case.z0 for case in cases]), energy.join([case.exact for case in cases])
    return Case(energy, z0, exact, max(case.slack for case in cases), Blocks(index, len(cases)))


@functools.cache
def batch(dtype: torch.dtype) -> Case:
    """Easy and hard problems, one on a subspace, one with solution 0."""
    return together([quadratic(dtype), log_cosh(dtype), zero(dtype), mirrored(dtype), log_cosh(dtype, 0.5)])


def cosine(dtype: torch.dtype) -> Case:
    return Case(torch.cos, torch.zeros(1, dtype=dtype), torch.tensor([0.7390851332151607], dtype=F64), 1e-15)


def affine(A: Tensor, c: Tensor, dtype: torch.dtype) -> Case:
    factor, shift = A.to(dtype), c.to(dtype)
    exact = torch.linalg.solve(torch.eye(len(A), dtype=F64) - factor.double(), shift.double())
    return Case(lambda z: factor @ z + shift, torch.zeros_like(shift), exact, 1e-13 * float(1 + exact.norm()))


def skewed(dtype: torch.dtype) -> Case:
    """No contraction in norm (‖A‖ > 2), but every eigenvalue of A is ±0.6i."""
    return affine(torch.tensor([[0.0, 2.4], [-0.15, 0.0]]), random(2, 3), dtype)


def linear(dtype: torch.dtype) -> Case:
    """A far from symmetric; the factor leaves room for the rounding of A."""
    case = affine(random(6, 6, norm=0.9), random(6, 2, seed=1), dtype)
    return dataclasses.replace(case, fn=Contraction(case.fn, 0.9 + 1e-6))


def ignn(dtype: torch.dtype) -> Case:
    """z ↦ tanh(AzW + b), ‖A‖‖W‖ = 0.9, by long iteration."""
    A, W = random(5, 5, norm=1.0).to(dtype), random(3, 3, seed=1, norm=0.9).to(dtype)
    b, exact = random(5, 3, seed=2).to(dtype), torch.zeros(5, 3, dtype=F64)
    for _ in range(400):
        exact = torch.tanh(A.double() @ exact @ W.double() + b.double())
    return Case(Contraction(lambda z: torch.tanh(A @ z @ W + b), 0.9 + 1e-6), torch.zeros_like(b), exact, 1e-13)


ENERGIES: list[Maker] = [quadratic, log_cosh, mirrored, zero, batch]
CONTRACTIONS: list[Maker] = [linear, ignn]
PLAIN: list[Maker] = [cosine, skewed]
