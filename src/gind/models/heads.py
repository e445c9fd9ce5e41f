"""Readouts of a model: linear or MLP."""

from typing import Any, Literal, get_args

from torch import nn

from gind.features import Dropout

__all__ = ["Head", "check_choice", "make_head"]

Head = Literal["linear", "mlp", "mlp-inner"]


def make_head(
    kind: Head, channels: int, out_channels: int, dropout: float, *, in_channels: int | None = None
) -> nn.Sequential:
    """A linear map, or one hidden layer of `channels` with ELU; dropout before each linear map.

    It reads `in_channels`, which are `channels` unless said otherwise. "mlp-inner", the published MLP, has dropout
    before its second map only.
    """
    read = channels if in_channels is None else in_channels
    if kind == "linear":
        return nn.Sequential(Dropout(dropout), nn.Linear(read, out_channels))
    return nn.Sequential(
        Dropout(0.0 if kind == "mlp-inner" else dropout),
        nn.Linear(read, channels),
        nn.ELU(),
        Dropout(dropout),
        nn.Linear(channels, out_channels),
    )


def check_choice(name: str, value: object, kind: Any) -> None:
    """Refuse a name that is not among the choices of a Literal."""
    choices = get_args(kind)
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")
