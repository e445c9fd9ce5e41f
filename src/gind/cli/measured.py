"""What `gind bench` prints: tables and bars, in 80 columns."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gind.bench.schema import CaseEntry, Profile, Report
from gind.bench.words import bytes_, case_title, machine_lines, profile_rows, profile_title, rate, seconds

__all__ = ["report", "written"]

_BAR = 40


def report(console: Console, measured: Report) -> None:
    """Everything that was measured."""
    for line in machine_lines(measured):
        console.print(line, highlight=False, markup=False)
    for case in measured["cases"]:
        console.print()
        console.print(f"[bold]{escape(case_title(case))}[/]", highlight=False)
        console.print(_times(case), highlight=False)
        _bars(console, case)
        if "profile" in case:
            console.print(f"[dim]{escape(profile_title(case['profile']))}[/]", highlight=False)
            console.print(_profile(case["profile"]), highlight=False)
    console.print()
    console.print(_flux(measured), highlight=False)
    for line in _limits(measured):
        console.print(line, highlight=False)
    console.print()
    for curve in measured["scaling"]:
        first, last = curve["points"][0], curve["points"][-1]
        span = f"{dict(first)[curve['variable']]:,} to {dict(last)[curve['variable']]:,} {curve['variable']}"
        ends = f"{seconds(first['seconds'])} to {seconds(last['seconds'])}"
        console.print(f"one iteration, {span}: {ends}, slope {curve['slope']:.2f}", highlight=False)


def written(console: Console, paths: Sequence[Path]) -> None:
    """Where files are."""
    for path in paths:
        console.print(f"Written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _times(case: CaseEntry) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("measure", "contender"):
        table.add_column(title)
    for title in ("best", "ratio", "peak memory"):
        table.add_column(title, justify="right")
    for group in case["groups"]:
        for number, entry in enumerate(group["contenders"]):
            name = "" if number else group["measure"]
            cells = [name, entry["name"], seconds(entry["seconds"]), f"{entry['ratio']:.2f}", bytes_(entry["peak"])]
            table.add_row(*map(escape, cells))
    return table


def _bars(console: Console, case: CaseEntry) -> None:
    """Times within a measure, as lengths; the slowest has the whole width."""
    for group in case["groups"]:
        slowest = max(entry["seconds"] for entry in group["contenders"])
        console.print(f"[dim]{escape(group['measure'])}[/]", highlight=False)
        for number, entry in enumerate(group["contenders"]):
            length = max(1, round(_BAR * entry["seconds"] / slowest))
            color = "dim" if number else "green"
            text = f"  {entry['name'][:18]:<18} [{color}]{'█' * length}[/] {entry['ratio']:.2f}"
            console.print(text, highlight=False)


def _profile(profile: Profile) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    titles, *rows = profile_rows(profile)
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _flux(measured: Report) -> Table:
    titles = ("flux, 1 thread", "best", "m h per s", "of tanh", "of compute", "of bandwidth")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left")
    for case in measured["cases"]:
        flux = case["flux"]
        shares = [f"{flux['of_tanh']:.0%}", f"{flux['of_compute']:.0%}"]
        band = f"{flux['of_bandwidth']:.0%} to {flux['of_bandwidth_uncached']:.0%}"
        table.add_row(escape(case["name"]), seconds(flux["seconds"]), rate(flux["rate"], ""), *shares, band)
    return table


def _limits(measured: Report) -> list[str]:
    peaks = measured["peaks"]
    triad = f"{rate(peaks['triad'], 'B/s')} (one thread {rate(peaks['triad_one_thread'], 'B/s')})"
    return [
        f"copy {rate(peaks['copy'], 'B/s')}, triad {triad}, sgemm {rate(peaks['sgemm'], 'flop/s')}",
        f"one core: {rate(peaks['tanh'], '')} tanh per s, {rate(peaks['edge'], '')} edge channels per s",
    ]
