"""PyG's attention layer, with sums over neighbors in one operator.

Plain PyTorch is its definition and serves every device. On the CPU numba takes over, which stores nothing of the size
of edges times channels.
"""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from gind.graph import Graph
from gind.kernels import has_numba

__all__ = ["Attention", "attend", "with_loops"]


@torch.library.custom_op("gind::attend", mutates_args=())
def _attend(crow: Tensor, source: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    target = _targets(crow)
    return torch.zeros_like(x).index_add(0, target, alpha[..., None] * x[source])


@torch.library.custom_op("gind::attend_backward", mutates_args=())
def _attend_backward(crow: Tensor, source: Tensor, alpha: Tensor, x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    sent = grad[_targets(crow)]
    return (sent * x[source]).sum(-1), torch.zeros_like(x).index_add(0, source, alpha[..., None] * sent)


def attend(crow: Tensor, source: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    """(n, heads, h): Σ_e α_e,k x_source(e),k over the edges e that end at a node, for each head k.

    Edges are sorted by where they end, at node i those from crow[i] to crow[i + 1]; α is (edges, heads), x
    (n, heads, h). Differentiable in α and x, once and in reverse. Numbers of less than 32 bits are summed in float32.
    """
    dtype = torch.promote_types(alpha.dtype, x.dtype)
    inputs = [tensor.to(torch.promote_types(dtype, torch.float32)).contiguous() for tensor in (alpha, x)]
    result: Tensor = _attend(crow, source, *inputs)
    return result.to(dtype)


def with_loops(graph: Graph) -> Tensor:
    """(2, edges): the edges of a graph without self-loops and a loop at every node, sorted by where they end."""
    loop = torch.arange(graph.num_nodes, device=graph.device)
    edges = torch.stack([torch.cat([graph.tail, loop]), torch.cat([graph.head, loop])])
    return edges[:, torch.argsort(edges[1], stable=True)]


class Attention(GATConv):
    """PyG's layer on edges that `with_loops` sorted."""

    def __init__(self, in_channels: int, out_channels: int, heads: int, **options: Any) -> None:
        super().__init__(in_channels, out_channels, heads, add_self_loops=False, **options)

    def propagate(self, edge_index: Tensor, size: Any = None, **what: Any) -> Tensor:
        """Sums with weights α, (n, heads, h)."""
        x, alpha = what["x"][0], what["alpha"]
        counts = torch.bincount(edge_index[1], minlength=len(x))
        return attend(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), edge_index[0], alpha, x)


def _targets(crow: Tensor) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(crow) - 1, device=crow.device), crow.diff())


@_attend.register_fake
def _(crow, source, alpha, x):
    return torch.empty_like(x)


@_attend_backward.register_fake
def _(crow, source, alpha, x, grad):
    return torch.empty_like(alpha), torch.empty_like(x)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, *_attend_backward(*ctx.saved_tensors, grad.contiguous())


_attend.register_autograd(_backward, setup_context=_save)


def _register_cpu() -> None:
    from gind.baselines import attention_loops as loops
    from gind.kernels.cpu import run

    @_attend.register_kernel("cpu")
    def _(crow, source, alpha, x):
        out = torch.empty_like(x)
        run(loops.attend, x.flatten(1), (crow, source, alpha), crow, source, alpha, x, out)
        return out

    @_attend_backward.register_kernel("cpu")
    def _(crow, source, alpha, x, grad):
        of_alpha, of_x = torch.empty_like(alpha), torch.empty_like(x)
        tensors = (crow, source, alpha, x, grad, of_alpha, of_x)
        run(loops.attend_backward, x.flatten(1), (crow, source, alpha), *tensors)
        return of_alpha, of_x


if has_numba():
    _register_cpu()
