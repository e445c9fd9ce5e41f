"""Words that go with a count."""

__all__ = ["are", "have", "plural"]


def plural(count: int, word: str) -> str:
    """1 run, 2 runs, 1,000 runs."""
    return f"{count:,} {word}" + "s" * (count != 1)


def are(count: int) -> str:
    """1 is, 2 are."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """1 has, 2 have."""
    return "has" if count == 1 else "have"
