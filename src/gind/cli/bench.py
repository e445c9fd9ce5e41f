"""`gind bench`: what was asked for, and its order of work."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from rich.console import Console

__all__ = ["BenchRequest"]

_BUDGET = 5.0  # seconds for the rounds of a measure on a graph, unless --rounds says how many


@dataclasses.dataclass(frozen=True)
class BenchRequest:
    """What was asked for; None or empty: not given."""

    datasets: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    data: Path | None = None
    hidden: int | None = None
    rounds: int | None = None
    threads: int | None = None
    quick: bool = False
    large: bool = False
    measures: tuple[str, ...] = ()
    memory: bool | None = None
    memory_of: tuple[str, ...] = ()
    saved: tuple[Path, ...] = ()
    json: Path | None = None
    page: Path | None = None
    out: Path | None = None

    def run(self, console: Console) -> None:
        """Measure, or read what was measured; show it and write the files."""
        from gind.bench import bench, embed, read_report  # the other commands need not wait for it
        from gind.bench.figure import write_figure
        from gind.cli import measured
        from gind.files import write_atomically

        self._check()
        page = None if self.page is None else self.page.read_text(encoding="utf-8")
        if page is not None:
            embed(page, [])  # refuses before anything is measured
        if self.saved:
            reports = [read_report(path) for path in self.saved]
        else:
            options = self._options()
            with console.status("") as status:
                reports = [bench(options, lambda text: status.update(f"measuring {text}"))]
        for report in reports:
            measured.report(console, report)
        texts = {} if page is None or self.page is None else {self.page: embed(page, reports)}
        if self.json is not None:
            texts[self.json] = json.dumps(reports[0], indent=1) + "\n"
        for path, text in texts.items():
            with write_atomically(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="\n")
        figures = [] if self.out is None else write_figure(reports[0], self.out)
        measured.written(console, [*texts, *figures])

    def _check(self) -> None:
        from gind.bench import BenchError

        if self.quick and self.large:
            raise BenchError("--quick and --large exclude each other.")
        named = (*self.datasets, *self.shapes, *self.measures, *self.memory_of)
        measuring = (*named, self.hidden, self.rounds, self.threads, self.memory)
        if self.saved and (self.quick or self.large or any(value not in (None, "") for value in measuring)):
            raise BenchError("--from shows what was measured before: leave out what says how to measure.")
        if len(self.saved) > 1 and (self.json is not None or self.out is not None):
            raise BenchError("--json and --out are for one report: give one --from.")
        if self.json is not None and not self.json.parent.is_dir():
            raise BenchError(f"There is no directory {self.json.parent} for {self.json.name}.")

    def _options(self) -> Any:
        from gind.bench import USUAL_SHAPES, CaseRequest, Options
        from gind.bench.roofline import SMALL
        from gind.bench.scaling import LARGE, QUICK

        shapes = self.shapes
        if not shapes and not self.datasets:
            shapes = ("texas",) if self.quick else USUAL_SHAPES
        channels = self.hidden or (16 if self.quick else 64)
        cases = [CaseRequest(name, False, channels, self.data) for name in self.datasets]
        cases += [CaseRequest(name, True, channels) for name in shapes]
        given: dict[str, Any] = {"budget": _BUDGET, **({"ranges": LARGE} if self.large else {})}
        if self.quick:
            given = {"rounds": 1, "ranges": QUICK, "sizes": SMALL, "memory": False}
        if self.rounds is not None:
            given |= {"rounds": self.rounds, "budget": math.inf}
        if self.measures:
            given["measures"] = self.measures
        if self.memory is not None or self.memory_of:
            given |= {"memory": self.memory is not False, "memory_of": self.memory_of}
        return Options(tuple(cases), threads=self.threads, **given)
