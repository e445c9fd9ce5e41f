"""What a search leaves: the best settings as TOML for `gind train --config`, and every trial as a line of CSV."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gind.experiments.toml import dump_toml
from gind.files import write_atomically
from gind.tuning.choose import Tried
from gind.tuning.search import Search

__all__ = ["write_settings", "write_trials"]


def write_settings(path: Path, search: Search, dataset: str, metric: str, best: Tried, trials: int) -> None:
    """The settings of the best trial: fixed and searched keys."""
    splits = ", ".join(map(str, search.splits))
    number = f"{best.number} (the defaults)" if best.default else str(best.number)
    lines = [
        f"# {search.title}",
        f"# The best of {trials} trials, number {number}: validation {metric} {best.value:.6f}, loss {best.loss:.6f}, "
        f"means over splits {splits}.",
        "# Chosen on validation parts only: the lowest loss among the trials as good as the highest metric.",
    ]
    with write_atomically(path) as temporary:
        text = "\n".join(lines) + "\n\n" + dump_toml(search.settings(dataset, best.values))
        temporary.write_text(text, encoding="utf-8")


def write_trials(path: Path, search: Search, tried: Sequence[Tried]) -> None:
    """All trials by number."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", "validation", "loss", "by_split", "default", *search.space, "error"])
    for each in tried:
        numbers = ["" if number is None else f"{number:.6f}" for number in (each.value, each.loss)]
        values = [_cell(each.values.get(key, "")) for key in search.space]
        default = "yes" if each.default else "no"
        by_split = " ".join(f"{number:.6f}" for number in each.by_split)
        writer.writerow([each.number, each.state, *numbers, by_split, default, *values, each.error])
    with write_atomically(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
