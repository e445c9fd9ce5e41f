"""`Study`: what was tried and what to try next, by Optuna's TPE, kept in a journal that survives a kill.

One process writes the journal, so a trial is never asked for twice. Optuna numbers every attempt; an attempt that was
lost is failed and its parameters are tried again under another number. We count trials: an attempt that repeats another
is the same trial. The sampler is seeded anew by the number of the trial, so a search that was stopped goes on as if
it had not been.
"""

import dataclasses
import itertools
import json
import statistics
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gind.errors import MissingPackageError, UserError
from gind.tuning.choose import Tried, rank
from gind.tuning.search import Search
from gind.tuning.space import Parameter, Range

try:
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage
    from optuna.trial import FrozenTrial, TrialState
except ImportError as missing:
    raise MissingPackageError("Optuna is not installed: pip install 'gind[tune]'.") from missing

__all__ = ["Attempt", "Study", "TuningError"]

_STARTUP = 5  # complete trials before one may be pruned
_TIE = 1e-6  # how much the sampler sees of the loss: enough to order equal metrics, too little for anything else
_DEATHS = 2  # processes that a trial may cost before it counts as failed


class TuningError(UserError, RuntimeError):
    """A search that cannot go on; the message says what to do."""


@dataclasses.dataclass(eq=False)
class Attempt:
    """A trial that is running."""

    trial: optuna.Trial
    values: Mapping[str, Any]
    """what to set; nothing for the defaults"""
    default: bool
    results: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    """metric and loss by split"""


class Study:
    """The trials of one search on one dataset."""

    def __init__(self, search: Search, dataset: str, path: Path) -> None:
        self.search, self.dataset = search, dataset
        self._study = _open(path, search.prune_after)
        self._check(path)
        self._default_draws = search.default_draws(dataset)
        if not self._trials():
            self._study.enqueue_trial(self._default_draws, user_attrs={"default": True})
        for trial in self._trials():
            if trial.state is TrialState.RUNNING:
                self._again(trial)

    def _check(self, path: Path) -> None:
        """Refuse another search than the one that the journal is of."""
        now = json.loads(json.dumps(self.search.identity(self.dataset)))
        before = self._study.user_attrs.get("identity")
        if before is None:
            self._study.set_user_attr("identity", now)
        elif before != now:
            old, new = dict(_flat(before)), dict(_flat(now))
            key = next((key for key in [*old, *new] if old.get(key) != new.get(key)), "search")
            raise TuningError(
                f"{path} was begun with another search ({key} was {old.get(key)!r}, is {new.get(key)!r}). "
                "Go on with the same, or choose another --out."
            )

    @property
    def metric(self) -> str:
        """Name of the metric; empty before it is known."""
        return str(self._study.user_attrs.get("metric", ""))

    @metric.setter
    def metric(self, name: str) -> None:
        self._study.set_user_attr("metric", name)

    def tried(self) -> list[Tried]:
        """The trials that have ended, by number."""
        numbers = self._numbers()
        ended = [trial for trial in self._trials() if trial.state.is_finished() and not _lost(trial)]
        return sorted((self._tried(trial, numbers[trial.number]) for trial in ended), key=lambda each: each.number)

    def best(self) -> Tried | None:
        """The winner."""
        ranked = self.ranked()
        return ranked[0] if ranked else None

    def ranked(self) -> list[Tried]:
        """The complete trials, the winner first."""
        return rank(self.tried())

    def ask(self) -> Attempt:
        """The next trial: what is waiting, or what the sampler draws."""
        waiting = [trial.number for trial in self._trials() if trial.state is TrialState.WAITING]
        numbers = self._numbers()
        number = numbers[waiting[0]] if waiting else len(set(numbers.values()))
        with _quiet():
            self._study.sampler = optuna.samplers.TPESampler(
                seed=int(np.random.SeedSequence([self.search.seed, number]).generate_state(1)[0]),
                multivariate=True,
                constant_liar=True,
            )
            trial = self._study.ask()
            default = bool(trial.user_attrs.get("default"))
            keys = self._default_draws if default else self.search.space
            drawn = {key: _suggest(trial, key, self.search.space[key]) for key in keys}
        values = {} if default else {key: self.search.space[key].value(value) for key, value in drawn.items()}
        return Attempt(trial, values, default)

    def add(self, attempt: Attempt, value: float, loss: float) -> Tried | None:
        """Take the result of the next split; the trial, if it has ended with that."""
        attempt.results.append((value, loss))
        done = len(attempt.results)
        mean, mean_loss = (statistics.fmean(column) for column in zip(*attempt.results, strict=True))
        attempt.trial.set_user_attr("loss", mean_loss)
        attempt.trial.report(mean, done)
        if done == len(self.search.splits):
            return self._tell(attempt, mean - _TIE * mean_loss, TrialState.COMPLETE)
        if not attempt.default and attempt.trial.should_prune():
            return self._tell(attempt, None, TrialState.PRUNED)
        return None

    def fail(self, attempt: Attempt, error: str) -> Tried:
        """The trial cannot be trained; it counts."""
        attempt.trial.set_user_attr("error", error)
        return self._tell(attempt, None, TrialState.FAIL)

    def lose(self, attempt: Attempt) -> Tried | None:
        """The process of the trial was killed: it is tried again, or has failed if that was not the first time."""
        deaths = attempt.trial.user_attrs.get("deaths", 0) + 1
        attempt.trial.set_user_attr("deaths", deaths)
        if deaths >= _DEATHS:
            return self.fail(attempt, f"{deaths} processes were killed. Out of memory?")
        self._again(self._trials()[attempt.trial.number])
        return None

    def importance(self) -> dict[str, float]:
        """How much of the metric's differences each key explains; empty if there are too few trials to say."""
        keys = list(self.search.space)
        whole = [
            trial for trial in self._trials() if trial.state is TrialState.COMPLETE and len(trial.params) == len(keys)
        ]
        if len(whole) < _STARTUP or len({trial.value for trial in whole}) < 2:
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few trials
            return optuna.importance.get_param_importances(self._study, params=keys)

    def _trials(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _numbers(self) -> dict[int, int]:
        """Optuna's number of an attempt → number of its trial."""
        numbers: dict[int, int] = {}
        for trial in self._trials():
            repeats = trial.user_attrs.get("repeats")
            numbers[trial.number] = len(set(numbers.values())) if repeats is None else numbers[repeats]
        return numbers

    def _again(self, trial: FrozenTrial) -> None:
        """Enqueue the parameters of an attempt that was lost, and fail it; a kill in between does no harm."""
        told = "error" in trial.user_attrs  # it had failed already, and was killed before it was told so
        if not told and not any(other.user_attrs.get("repeats") == trial.number for other in self._trials()):
            default = trial.user_attrs.get("default", False)
            # lost before everything was drawn: drawn again, from the same seed
            drawn = trial.params if len(trial.params) == len(self.search.space) else {}
            notes = {"repeats": trial.number, "deaths": trial.user_attrs.get("deaths", 0), "default": default}
            self._study.enqueue_trial(self._default_draws if default else drawn, user_attrs=notes)
        self._study.tell(trial.number, state=TrialState.FAIL)

    def _tell(self, attempt: Attempt, value: float | None, state: TrialState) -> Tried:
        self._study.tell(attempt.trial, value, state=state)
        number = attempt.trial.number
        return self._tried(self._trials()[number], self._numbers()[number])

    def _tried(self, trial: FrozenTrial, number: int) -> Tried:
        notes = trial.user_attrs
        default = bool(notes.get("default"))
        steps = trial.intermediate_values
        states = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}
        space = self.search.space
        drawn = {key: space[key].value(trial.params[key]) for key in space if key in trial.params}
        return Tried(
            number,
            states[trial.state],
            steps[max(steps)] if steps else None,
            notes.get("loss"),
            _by_split(steps),
            default,
            self.search.default(self.dataset) if default else drawn,
            notes.get("error", ""),
        )


def _suggest(trial: optuna.Trial, key: str, parameter: Parameter) -> Any:
    if not isinstance(parameter, Range):
        return trial.suggest_categorical(key, list(parameter.values))
    if parameter.kind is int:
        step = 1 if parameter.step is None else int(parameter.step)
        return trial.suggest_int(key, int(parameter.low), int(parameter.high), step=step, log=parameter.log)
    return trial.suggest_float(key, parameter.low, parameter.high, step=parameter.step, log=parameter.log)


def _by_split(means: Mapping[int, float]) -> tuple[float, ...]:
    """From the mean over the first splits, of each number of them, to the values."""
    sums = [0.0, *(count * means[count] for count in sorted(means))]
    return tuple(after - before for before, after in itertools.pairwise(sums))


def _lost(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.FAIL and "error" not in trial.user_attrs


def _open(path: Path, prune_after: int) -> optuna.Study:
    """The study of a journal, or a new one."""
    _mend(path)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with _quiet():
            return optuna.create_study(
                storage=JournalStorage(JournalFileBackend(str(path))),
                study_name="gind",
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=prune_after),
            )
    except (ValueError, KeyError, TypeError) as error:
        raise TuningError(f"{path} is no journal of a search. Remove it, or choose another --out.") from error


def _mend(path: Path) -> None:
    """Take away what a kill left: half a line at the end, and the lock of the journal, which only its owner held."""
    Path(f"{path}.lock").unlink(missing_ok=True)
    if path.exists():
        with path.open("rb+") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


def _flat(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{above}.{key}" if above else key)
    else:
        yield above, value


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that an interface may change; constraints.txt pins it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield
