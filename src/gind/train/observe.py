"""Who watches a training: the interface, the JSON lines file, TensorBoard."""

import dataclasses
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gind.errors import MissingPackageError
from gind.files import write_atomically
from gind.train.problem import Watched
from gind.train.state import EpochRecord

__all__ = ["MetricsFile", "Observer", "TensorBoard"]


class Observer:
    """Is told of the start (with the epochs done before a resume), of every epoch, and of the end, also a bad one."""

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """A training begins, or goes on after `history`."""

    def epoch(self, record: EpochRecord) -> None:
        """An epoch is done."""

    def end(self) -> None:
        """No more epochs will come."""


class MetricsFile(Observer):
    """One line of JSON per epoch. After a resume the lines of epochs that were lost are gone.

    `watched` is the part that is evaluated after each epoch, whose numbers have its name.
    """

    def __init__(self, path: str | Path, watched: Watched = "val") -> None:
        self.path = Path(path)
        self.watched: Watched = watched
        self._file: io.TextIOBase | None = None

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """Begin the file anew with the epochs there are."""
        with write_atomically(self.path) as temporary:
            temporary.write_text("".join(map(self._line, history)), encoding="utf-8")
        self._file = self.path.open("a", encoding="utf-8")

    def epoch(self, record: EpochRecord) -> None:
        """Append a line."""
        assert self._file is not None
        self._file.write(self._line(record))
        self._file.flush()

    def end(self) -> None:
        """Close."""
        if self._file is not None:
            self._file.close()

    def _line(self, record: EpochRecord) -> str:
        return json.dumps(_numbers(record, self.watched)) + "\n"


class TensorBoard(Observer):
    """Scalars for TensorBoard; `watched` as for `MetricsFile`."""

    def __init__(self, directory: str | Path, watched: Watched = "val") -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingPackageError("TensorBoard is not installed: pip install 'gind[track]'.") from error
        self._make: Any = lambda: SummaryWriter(str(directory))
        self._writer: Any = None
        self._watched: Watched = watched

    def start(self, history: Sequence[EpochRecord], epochs: int, metric: str) -> None:
        """Open the directory."""
        self._writer = self._make()

    def epoch(self, record: EpochRecord) -> None:
        """Write the numbers of this epoch."""
        for name, value in _numbers(record, self._watched).items():
            if value is not None and name != "epoch":
                self._writer.add_scalar(name, value, record.epoch)

    def end(self) -> None:
        """Close."""
        if self._writer is not None:
            self._writer.close()


def _numbers(record: EpochRecord, watched: Watched) -> dict[str, Any]:
    """The record for JSON, which knows no nan: null where nothing was measured. `val` has the name of its part."""
    names = {"val": watched, "val_loss": f"{watched}_loss"}
    return {
        names.get(name, name): None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in dataclasses.asdict(record).items()
    }
