"""What a person sees of a training: a live line in a terminal, plain lines anywhere else."""

import math
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from gind.train.observe import Observer
from gind.train.problem import Watched
from gind.train.state import EpochRecord

__all__ = ["LiveProgress", "PlainProgress", "show_progress"]


def show_progress(console: Console, watched: Watched = "val") -> Observer:
    """Live in a terminal, plain lines otherwise; `watched` is the part that is evaluated after each epoch."""
    return LiveProgress(console, watched) if console.is_terminal else PlainProgress(console, watched)


class LiveProgress(Observer):
    """A bar with the loss, the validation metric, the solver's steps and residual, and the time that is left."""

    def __init__(self, console: Console, watched: Watched = "val") -> None:
        self._watched: Watched = watched
        self._narrow = console.width < 110  # then there is room for the numbers alone
        bar = [] if self._narrow else [BarColumn(bar_width=16)]
        self._progress = Progress(
            TextColumn("[bold]epoch {task.completed:.0f}/{task.total:.0f}"),
            *bar,
            _Numbers(),
            TimeRemainingColumn(compact=True),
            console=console,
        )
        self._best: EpochRecord | None = None
        self._metric = ""

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """Show the bar."""
        self._metric = "" if self._narrow else metric
        for record in history:
            self._best = record if record.best else self._best
        self._task = self._progress.add_task("", total=epochs, completed=len(history), numbers="")
        self._progress.start()

    def epoch(self, record: EpochRecord) -> None:
        """Move the bar."""
        self._best = record if record.best else self._best
        numbers = _numbers(record, self._best, f"{self._watched} {self._metric}", styled=True)
        if self._narrow:
            numbers = numbers.replace("  ", " ").replace("residual", "res")
        self._progress.update(self._task, completed=record.epoch, numbers=numbers)

    def end(self) -> None:
        """Leave the last line standing."""
        self._progress.stop()


class PlainProgress(Observer):
    """A line after the first epoch, every twentieth of the way, at most one a second, and at the end."""

    def __init__(self, console: Console, watched: Watched = "val") -> None:
        self._console, self._watched = console, watched
        self._best: EpochRecord | None = None
        self._last: EpochRecord | None = None
        self._shown = 0
        self._time = float("-inf")
        self._epochs, self._metric = 1, ""

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """Remember how long the way is."""
        self._epochs, self._metric, self._shown = epochs, metric, len(history)
        for record in history:
            self._best = record if record.best else self._best
        self._seconds, self._done = 0.0, 0

    def epoch(self, record: EpochRecord) -> None:
        """Print a line if it is time for one."""
        self._best = record if record.best else self._best
        self._last = record
        self._seconds, self._done = self._seconds + record.seconds, self._done + 1
        far_enough = record.epoch - self._shown >= self._epochs / 20 or self._done == 1
        if far_enough and time.monotonic() - self._time >= 1:
            self._print(record)

    def end(self) -> None:
        """Print the last epoch."""
        if self._last is not None and self._last.epoch != self._shown:
            self._print(self._last)

    def _print(self, record: EpochRecord) -> None:
        left = (self._epochs - record.epoch) * self._seconds / max(self._done, 1)
        numbers = _numbers(record, self._best, f"{self._watched} {self._metric}")
        width = len(str(self._epochs))
        self._console.print(
            f"epoch {record.epoch:>{width}}/{self._epochs}  {numbers}  ETA {left:.0f} s",
            highlight=False,
            soft_wrap=True,
        )
        self._shown, self._time = record.epoch, time.monotonic()


class _Numbers(ProgressColumn):
    def render(self, task: Task) -> Text:
        """The numbers of the last epoch."""
        return Text.from_markup(task.fields["numbers"])


def _numbers(record: EpochRecord, best: EpochRecord | None, name: str, styled: bool = False) -> str:
    value = best.val if best is not None else float("nan")
    now = record.val if record.val == record.val else value
    strong, end = ("[green]", "[/]") if styled else ("", "")
    text = f"loss {record.loss:.4f}  {name.rstrip()} {now:.4f}"
    if name.startswith("val"):  # of a test part nothing is the best
        text += f" ({strong}best {value:.4f}{end})"  # of the best epoch, which its loss may have chosen
    if record.steps:
        text += f"  steps {record.steps:.0f}+{record.gradient_steps:.0f}"
    if record.steps and not math.isnan(record.residual):
        text += f"  residual {record.residual:.0e}"
    if record.open:
        text += f"  {'[red]' if styled else ''}{record.open} open{end}"
    return text
