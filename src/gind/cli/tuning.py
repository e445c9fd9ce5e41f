"""What `gind tune` prints."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gind.tuning import Tried, Tuning

__all__ = ["search"]

_SHOWN = 5  # of the best trials


def search(console: Console, tuning: Tuning) -> bool:
    """Run a search: a line per trial with the time that is left, then what came out; whether anything did."""
    study = tuning.study
    total, done = study.search.trials, len(study.tried())
    title = f"[bold]{escape(study.search.model)}[/] on [bold]{escape(study.dataset)}[/]"
    console.print(f"{title}: {done} of {total} trials are there", highlight=False, soft_wrap=True)
    start, before = time.monotonic(), done
    for tried in tuning:
        done += 1
        left = (total - done) * (time.monotonic() - start) / (done - before)
        console.print(
            f"{done}/{total}  {_line(tried, study.best())}  ETA {_time(left)}", highlight=False, soft_wrap=True
        )
    best = study.ranked()[:_SHOWN]
    if not best:
        console.print(f"No trial could be trained: see {escape(str(tuning.trials))}.", highlight=False, soft_wrap=True)
        return False
    console.print(_table(best, list(study.search.space), study.metric))
    _importance(console, study.importance())
    console.print(f"Every trial: {escape(str(tuning.trials))}", highlight=False, soft_wrap=True)
    console.print(f"Use it: gind train --config {escape(str(tuning.settings))}", highlight=False, soft_wrap=True)
    return True


def _line(tried: Tried, best: Tried | None) -> str:
    what = "defaults" if tried.default else _settings(tried.values)
    if tried.state == "failed":
        return f"[red]failed[/] {escape(what)}: {escape(tried.error)}"
    pruned = "" if tried.state == "complete" else f", pruned after {tried.splits}"
    top = "" if best is None else f" (winner [green]{best.value:.4f}[/]{pruned})"
    return f"validation {tried.value:.4f}{top}  {escape(what)}"


def _table(trials: Sequence[Tried], keys: Sequence[str], metric: str) -> Table:
    """A column for each trial: searches have more keys than a terminal has room for beside each other."""
    names = ["defaults" if tried.default else f"trial {tried.number}" for tried in trials]
    table = Table("", *names, title="the best trials")
    table.add_row(f"validation {metric}", *(f"{tried.value:.4f}" for tried in trials))
    table.add_row("loss", *(f"{tried.loss:.4f}" for tried in trials), end_section=True)
    for key in keys:
        table.add_row(escape(key), *(escape(_value(tried.values.get(key, ""))) for tried in trials))
    return table


def _importance(console: Console, shares: Mapping[str, float]) -> None:
    if shares:
        text = ", ".join(f"{key} {share:.0%}" for key, share in sorted(shares.items(), key=lambda item: -item[1]))
        console.print(f"What mattered: {escape(text)}", highlight=False, soft_wrap=True)


def _settings(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in values.items())


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
