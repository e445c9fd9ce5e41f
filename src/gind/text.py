"""Pieces of text for pages and terminals: tables in Markdown, words that go with a count."""

from collections.abc import Sequence

__all__ = ["are", "cell", "have", "plural", "table"]


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """The lines of a table; all columns but the first `left` are aligned to the right."""
    rules = ["---" if number < left else "---:" for number in range(len(titles))]
    return [f"| {' | '.join(map(cell, line))} |" for line in (titles, rules, *rows)]


def cell(text: str) -> str:
    """A text that cannot break the table it stands in."""
    return " ".join(text.split()).replace("|", "\\|")


def plural(count: int, word: str) -> str:
    """1 run, 2 runs, 1,000 runs."""
    return f"{count:,} {word}" + "s" * (count != 1)


def are(count: int) -> str:
    """1 is, 2 are."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """1 has, 2 have."""
    return "has" if count == 1 else "have"
