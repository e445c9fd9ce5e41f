"""Checks that solvers, adjoints and layers share."""

import torch
from torch import Tensor

__all__ = ["check_count", "check_step", "in_words", "is_finite"]


def check_step(name: str, value: object) -> None:
    """A step size is positive, or None for the default."""
    if value is not None and (not isinstance(value, int | float) or not 0 < value < float("inf")):
        raise ValueError(f"`{name}` must be a positive number, or None for the default, got {value!r}.")


def check_count(name: str, value: object, least: int, hint: str = "") -> None:
    """A count is an int, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"`{name}` must be an int >= {least}, got {value!r}.{hint}")


def is_finite(x: Tensor) -> bool:
    """Whether all entries are; a sum, which a bad entry spoils, is quicker than a look at each."""
    x = x.detach()
    return bool(torch.isfinite(x.sum())) or bool(torch.isfinite(x).all())


def in_words(thing: object) -> str:
    """What was given in place of an option, for a refusal."""
    return f"the class {thing.__name__} (call it)" if isinstance(thing, type) else repr(thing)
