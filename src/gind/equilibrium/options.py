"""Checks that the options of solvers and adjoints share."""

__all__ = ["check_count", "check_step"]


def check_step(name: str, value: object) -> None:
    """A step size is positive, or None for the default."""
    if value is not None and (not isinstance(value, int | float) or not 0 < value < float("inf")):
        raise ValueError(f"`{name}` must be a positive number, or None for the default, got {value!r}.")


def check_count(name: str, value: object, least: int, hint: str = "") -> None:
    """A count is an int, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"`{name}` must be an int >= {least}, got {value!r}.{hint}")
