"""Pieces of Markdown."""

import math
from collections.abc import Sequence

from gind.reports.collect import Statistic

__all__ = ["cell", "duration", "scientific", "spread", "table"]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """The lines of a table; all columns but the first `left` are aligned to the right."""
    rules = ["---" if number < left else "---:" for number in range(len(titles))]
    return [f"| {' | '.join(map(cell, line))} |" for line in (titles, rules, *rows)]


def cell(text: str) -> str:
    """A text that cannot break the table it stands in."""
    return " ".join(text.split()).replace("|", "\\|")


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
