"""Numbers in words."""

import math

from gind.reports.collect import Statistic

__all__ = ["duration", "scientific", "spread"]


def spread(statistic: Statistic) -> str:
    """mean ± standard deviation, in percent."""
    return f"{statistic.mean:.2f}" + ("" if statistic.std is None else f" ± {statistic.std:.2f}")


def scientific(value: float | None) -> str:
    """1.2e-05; nothing finite is `none`."""
    return f"{value:.1e}" if value is not None and math.isfinite(value) else "none"


def duration(seconds: float) -> str:
    """The two largest units, or seconds."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
