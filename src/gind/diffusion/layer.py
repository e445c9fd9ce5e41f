"""`Diffusion`: the implicit layer. It binds input and graph to a map, solves for its equilibrium, and adds the skip."""

import math
from typing import Any, Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gind.diffusion.check import Ends, Injection, Output, check_input, check_options
from gind.diffusion.edge_norm import EdgeNorm, Gains, unit_gradient
from gind.diffusion.map import DiffusionEnergy, DiffusionMap, LiveMap, inner_product, zeros
from gind.diffusion.precision import centered, without_autocast
from gind.diffusion.readout import OutputNorm, normalize
from gind.diffusion.regularize import Laplacian, Regularizer, StepRegularizer
from gind.equilibrium import Adjoint, Anderson, HeavyBall, Implicit, Nesterov, Solution, Solver, Stop, fixed_point
from gind.equilibrium.solution import Throw
from gind.graph import Graph, Scaling, Symmetric, incidence_norm
from gind.kernels import Activation

__all__ = ["Diffusion"]


class Diffusion(nn.Module):
    """Z = -Ĝᵀσ(Ĝ(Z + b)Kᵀ)K, and out = b + Z (equation 6 of the paper).

    The equilibrium is the minimizer of a strongly convex energy for every K, unless a live normalization or a
    regularizer that acts as a step is chosen; then the layer runs as well, and its bound is infinite.

    `channels` is the width h of b and Z, `flux_channels` the number H of rows of K (default h; "wide K" if larger).

    scaling         Ĝ = G diag(s): `Symmetric()`, `Row()`, `OutDegree()`, `Identity()`
    activation      σ: "tanh", or "identity" for the linear ablation
    ends            "alike": an edge sees the difference of its ends, ĜZKᵀ, as in the paper; "own": each end has its own
                    matrix and degree, s_j z_j K_hᵀ - s_i z_i K_tᵀ on i → j; an undirected edge is one in each direction
    injection       "shared": Ĝ(Z + b)Kᵀ; "separate": ĜZKᵀ + ĜbUᵀ with its own matrix U; "head": with own ends, heads
                    alone inject, s_j b_j Uᵀ on i → j, so a node collects from those it points to
    injection_bias  "separate" or "head" with a bias: ĜZKᵀ + Ĝ(bUᵀ + c)
    edge_norm       None, `FrozenNorm(...)` (keeps the energy) or `LiveNorm(...)`
    regularizer     None, `Laplacian(eta)` (keeps the energy), `LaplacianStep(eta)` or `Decorrelation(eta)`
    dropout         rate of the one mask per forward pass that is put on the update, in training
    output          "sum": b + Z; "flux": Z alone
    output_norm     scale the output to root mean square 1: "node" (or True) each node's, "graph" each graph's
    injection_norm  scale the injected part so that its differences along edges have root mean square 1 in each graph
    injection_gain  a constant factor of the injected part
    flux_gain       a constant factor of the flux; 2: every edge counts in both directions, as in the published code
    K_norm          ‖K‖ before training (with own ends ‖K_t‖): K is this times a random orthogonal matrix; None: normal,
                    ‖K‖ about 2.8
    head_norm       ‖K_h‖/‖K_t‖ before training, for own ends: below 1 an edge moves its tail more than its head
    solver          default `HeavyBall()` with an energy (`Nesterov()` if nothing is measured), else `Anderson()`
    alpha           skip connection inside a map without energy; with an energy it is the step of `Picard(alpha)`
    """

    K: nn.Parameter
    U: nn.Parameter | None
    injection_offset: nn.Parameter | None
    gamma: nn.Parameter | None

    def __init__(
        self,
        channels: int,
        flux_channels: int | None = None,
        *,
        scaling: Scaling | None = None,
        activation: Activation = "tanh",
        ends: Ends = "alike",
        injection: Injection = "shared",
        injection_bias: bool = False,
        edge_norm: EdgeNorm | None = None,
        regularizer: Regularizer | None = None,
        dropout: float = 0.0,
        output: Output = "sum",
        output_norm: bool | OutputNorm = False,
        injection_norm: bool = False,
        injection_gain: float = 1.0,
        flux_gain: float = 1.0,
        K_norm: float | None = None,
        head_norm: float = 1.0,
        alpha: float = 1.0,
        solver: Solver | None = None,
        stop: Stop | None = None,
        adjoint: Adjoint | None = None,
        throw: Throw = "warn",
    ) -> None:
        super().__init__()
        self.channels = channels
        self.flux_channels = channels if flux_channels is None else flux_channels
        self.scaling = Symmetric() if scaling is None else scaling
        self.activation = activation
        self.ends = ends
        self.injection = injection
        self.injection_bias = injection_bias
        self.edge_norm = edge_norm
        self.regularizer = regularizer
        self.dropout = dropout
        self.output = output
        self.output_norm = output_norm
        self.injection_norm = injection_norm
        self.injection_gain = injection_gain
        self.flux_gain = flux_gain
        self.K_norm = K_norm
        self.head_norm = head_norm
        self.alpha = alpha
        self.stop = Stop() if stop is None else stop
        self.solver = self._default_solver() if solver is None else solver
        self.adjoint = Implicit() if adjoint is None else adjoint
        self.throw: Throw = throw
        check_options(self)
        both = self.flux_channels * (2 if ends == "own" else 1)
        rows = {"shared": 0, "separate": both, "head": self.flux_channels}[injection]
        self.K = nn.Parameter(torch.empty(both, channels))
        self.U = nn.Parameter(torch.empty(rows, channels)) if rows else None
        self.injection_offset = nn.Parameter(torch.empty(rows)) if injection_bias else None
        self.gamma = nn.Parameter(torch.empty(self.flux_channels)) if edge_norm is not None else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """K, U: normal with variance 2/h (‖K‖ is then about 2.8 for a square K); γ as the normalization says; c = 0.

        With `K_norm` all singular values of K are that: no direction fades sooner than another. With own ends all this
        is said of K_t, and K_h is `head_norm` times as large.
        """
        std = math.sqrt(2 / self.channels)
        matrices = self.K.detach().view(-1, self.flux_channels, self.channels)  # one, or of tails and of heads
        for K, ratio in zip(matrices, (1.0, self.head_norm), strict=False):
            if self.K_norm is None:
                nn.init.normal_(K, std=ratio * std)
            else:
                nn.init.orthogonal_(K, gain=ratio * self.K_norm)
        if self.U is not None:
            nn.init.normal_(self.U, std=std)
        if self.injection_offset is not None:
            nn.init.zeros_(self.injection_offset)
        if self.gamma is not None and self.edge_norm is not None:
            nn.init.constant_(self.gamma, self.edge_norm.start)

    @property
    def has_energy(self) -> bool:
        """Whether the equilibrium is the minimizer of an energy, so that bounds and exact gradients hold."""
        live = isinstance(self.edge_norm, EdgeNorm) and self.edge_norm.live
        return not live and not isinstance(self.regularizer, StepRegularizer)

    @overload
    def forward(
        self, b: Tensor, graph: Graph, *, z0: Tensor | None = None, return_solution: Literal[False] = False
    ) -> Tensor: ...

    @overload
    def forward(
        self, b: Tensor, graph: Graph, *, z0: Tensor | None = None, return_solution: Literal[True]
    ) -> tuple[Tensor, Solution]: ...

    def forward(
        self, b: Tensor, graph: Graph, *, z0: Tensor | None = None, return_solution: bool = False
    ) -> Tensor | tuple[Tensor, Solution]:
        """(n, h) to (n, h). `z0` is a warm start, the `value` of an earlier solution.

        Under autocast too the equilibrium is solved in the precision of the parameters.
        """
        with without_autocast(b, self.K.dtype) as given:
            fn = self.bind(given, graph)
            solution = self.solve(fn, z0)
            out = self.read(solution.value, given, fn)
        return (out, solution) if return_solution else out

    def bind(self, b: Tensor, graph: Graph, mask: Tensor | None = None) -> DiffusionMap:
        """The map z ↦ f(z) of this input on this graph; a new dropout mask in training, unless one is given."""
        check_input(b, graph, self.K)
        edges = graph.cover if self.ends == "own" else graph
        s = self.scaling.vector(edges).to(b.dtype)[:, None]
        C = self._inject(b, s, edges)
        if mask is None and self.training and self.dropout > 0:
            # three times as fast as torch.bernoulli
            mask = (torch.rand_like(b, dtype=torch.float32) >= self.dropout).to(b.dtype).div_(1 - self.dropout)
        frozen = self.edge_norm is not None and not self.edge_norm.live
        gains = Gains()
        if frozen:
            assert self.edge_norm is not None
            assert self.gamma is not None
            gains = self.edge_norm.gains(C, edges, self.activation, self.gamma)
        if self.flux_gain != 1:
            gains = gains.louder(C.new_full((graph.num_graphs, 1), self.flux_gain))
        if not self.has_energy:
            step = self.regularizer if isinstance(self.regularizer, StepRegularizer) else None
            return LiveMap(
                self.K,
                C,
                s,
                graph,
                edges,
                self.activation,
                mask,
                self.edge_norm,
                self.gamma,
                gains,
                step,
                self.alpha,
            )
        eta = self.regularizer.eta if isinstance(self.regularizer, Laplacian) else 0.0
        keep = 1.0 if mask is None else 1 - self.dropout
        norm = incidence_norm(edges, self.scaling)
        return DiffusionEnergy(self.K, C, s, graph, edges, self.activation, mask, gains, eta, keep, norm)

    def solve(self, fn: DiffusionMap, z0: Tensor | None = None) -> Solution:
        """The equilibrium of a bound map."""
        start = zeros(fn.s[:1].expand(fn.graph.num_nodes, self.channels)) if z0 is None else self._warm(z0, fn)
        return fixed_point(
            fn,
            start,
            solver=self.solver,
            stop=self.stop,
            adjoint=self.adjoint,
            throw=self.throw,
            inner=inner_product(fn.graph),
        )

    def read(self, z: Tensor, b: Tensor, fn: DiffusionMap) -> Tensor:
        """The layer's output from the equilibrium: b + Z (row variant: b + sZ̄), or Z alone."""
        out = fn.s * z if self.scaling.row else z
        if self.output == "sum":
            out = b + out
        if self.output_norm:
            out = normalize(out, fn.graph, "graph" if self.output_norm == "graph" else "node")
        return out

    def extra_repr(self) -> str:
        """The options that differ from the defaults."""
        shown = [f"{self.channels}"]
        if self.flux_channels != self.channels:
            shown.append(f"flux_channels={self.flux_channels}")
        shown.append(f"scaling={self.scaling}")
        defaults: dict[str, Any] = {
            "activation": "tanh",
            "ends": "alike",
            "injection": "shared",
            "injection_bias": False,
            "edge_norm": None,
            "regularizer": None,
            "dropout": 0.0,
            "output": "sum",
            "output_norm": False,
            "injection_norm": False,
            "injection_gain": 1.0,
            "flux_gain": 1.0,
            "K_norm": None,
            "head_norm": 1.0,
            "alpha": 1.0,
            "throw": "warn",
        }
        shown += [f"{k}={getattr(self, k)!r}" for k, v in defaults.items() if getattr(self, k) != v]
        shown += [f"solver={self.solver}", f"stop={self.stop}", f"adjoint={self.adjoint}"]
        return ", ".join(shown)

    def _inject(self, b: Tensor, s: Tensor, edges: Graph) -> Tensor:
        """C: s ⊙ bKᵀ or s ⊙ (bUᵀ + c); the row variant injects b/s and c/s, so that s cancels.

        Of a node with two ends, the one that edges leave comes first; where heads alone inject, it has nothing.
        Where s cancels, or is 1, what connected nodes have in common has no differences. It is left out, since rounding
        errors grow with the size of numbers.
        """
        W: Tensor = self.K if self.U is None else self.U
        c: Tensor | None = self.injection_offset
        if self.ends == "alike" and self.scaling.plain_injection:
            b, c = centered(b, edges), None if c is None else c - c.detach()  # 0, with the gradient of c
        C = F.linear(b, W, c)
        if self.injection == "head":
            C = F.pad(C, (self.flux_channels, 0))
        if self.ends == "own":
            C = C.view(edges.num_nodes, self.flux_channels)
        if not self.scaling.row:
            C = C.mul_(s) if C.dtype == s.dtype else s * C  # under autocast the product is of another precision
        if self.injection_norm:
            C = unit_gradient(C, edges)
        return C if self.injection_gain == 1 else self.injection_gain * C

    def _default_solver(self) -> Solver:
        if not self.has_energy:
            return Anderson()
        unmeasured = isinstance(self.stop, Stop) and not self.stop.measure  # anything else is refused in a moment
        return Nesterov() if unmeasured else HeavyBall()

    def _warm(self, z0: Tensor, fn: DiffusionMap) -> Tensor:
        if not isinstance(z0, Tensor):
            raise TypeError(f"`z0` must be a tensor, the `value` of an earlier solution, got {type(z0).__name__}.")
        if z0.shape != (fn.graph.num_nodes, self.channels) or z0.dtype != fn.s.dtype:
            raise ValueError(
                f"`z0` must be {fn.s.dtype} of shape {(fn.graph.num_nodes, self.channels)}, got {z0.dtype} of shape "
                f"{tuple(z0.shape)}. Pass the `value` of an earlier solution on the same graph."
            )
        return z0.detach()
