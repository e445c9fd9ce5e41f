"""The input layer of a model: a linear map of dense or sparse features."""

import torch
from torch import Tensor, nn

from gind.features.layout import check
from gind.features.project import project

__all__ = ["encode", "make_linear"]


def make_linear(in_channels: int, out_channels: int, bias: bool = True) -> nn.Linear:
    """A linear map; `in_channels=-1` takes its width from the first input."""
    for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
        lazy = name == "in_channels" and value == -1
        if isinstance(value, bool) or not isinstance(value, int) or not (lazy or value >= 1):
            raise ValueError(
                f"`{name}` must be an int >= 1{', or -1' if name == 'in_channels' else ''}, got {value!r}."
            )
    if in_channels == -1:
        return nn.LazyLinear(out_channels, bias)
    return nn.Linear(in_channels, out_channels, bias)


def encode(x: Tensor, linear: nn.Linear, dropout: float = 0.0, training: bool = False) -> Tensor:
    """The linear map of the features, after dropout; sparse CSR features stay sparse.

    Refuses features that are not (nodes, in_channels), finite, and in the precision of the parameters.
    """
    check(x)
    if x.dtype != linear.weight.dtype:
        raise TypeError(f"`x` is {x.dtype} but the parameters are {linear.weight.dtype}. Use `.to({x.dtype})`.")
    if isinstance(linear, nn.LazyLinear):
        linear(torch.zeros(0, x.shape[1], dtype=x.dtype, device=x.device))  # the first input fixes the width
    if x.shape[1] != linear.in_features:
        raise ValueError(f"`x` must have shape (nodes, {linear.in_features}), got {tuple(x.shape)}.")
    return project(x, linear.weight, linear.bias, dropout=dropout, training=training)
