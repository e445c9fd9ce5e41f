"""The content of a report, as its JSON file has it; times are in seconds, memory in bytes."""

import json
import types
import typing
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from gind.bench.case import BenchError

__all__ = [
    "FORMAT",
    "CaseEntry",
    "Curve",
    "Entry",
    "FluxRate",
    "Group",
    "Machine",
    "Peaks",
    "Point",
    "Profile",
    "Report",
    "Spent",
    "check",
    "read_report",
]

FORMAT = 1


class Machine(TypedDict):
    """Where it was measured."""

    processor: str
    cores: int
    caches: dict[str, str]
    memory: int | None
    load: float | None
    """of the last minute before the start: above 0.5, something else was running"""
    threads: int
    system: str
    versions: dict[str, str]


class Entry(TypedDict):
    """A contender in a measure."""

    name: str
    seconds: float
    """the best round"""
    rounds: list[float]
    ratio: float
    """seconds over those of the first contender"""
    peak: int | None
    """memory of one round with its preparation, above what was there before"""
    difference: float | None
    """of its result from the first contender's, relative; None where they compute different things"""


class Group(TypedDict):
    """A measure and its contenders."""

    measure: str
    contenders: list[Entry]


class Spent(TypedDict):
    """Where the time of one run of a contender went, under the profiler."""

    name: str
    seconds: float
    """of the whole run"""
    groups: dict[str, float]
    """seconds by group of operators; their sum is the whole"""


class Profile(TypedDict):
    """The same measure of two contenders."""

    measure: str
    before: Spent
    after: Spent


class FluxRate(TypedDict):
    """The flux kernel on one thread, against what the machine could do."""

    seconds: float
    rate: float
    """edges x channels per second"""
    of_tanh: float
    """rate over tanh per second"""
    of_compute: float
    """rate over the whole arithmetic of an edge per second"""
    of_bandwidth: float
    """if every row came from memory once"""
    of_bandwidth_uncached: float
    """if every edge fetched its rows from memory; above 1 where caches help"""


class CaseEntry(TypedDict):
    """All measures of a case."""

    name: str
    generated: bool
    nodes: int
    edges: int
    channels: int
    features: int
    groups: list[Group]
    flux: FluxRate
    profile: NotRequired[Profile]
    """not in reports of before there were any, nor where the measure was left out"""


class Peaks(TypedDict):
    """What the machine can do."""

    copy: float
    """bytes per second, all threads"""
    triad: float
    triad_one_thread: float
    sgemm: float
    """floating point operations per second, all threads"""
    tanh: float
    """elements per second on one thread, in the first cache"""
    edge: float
    """y_j - y_i, tanh and two sums, elements per second on one thread, in the first cache"""


class Point(TypedDict):
    """A point of a curve."""

    nodes: int
    edges: int
    channels: int
    seconds: float


class Curve(TypedDict):
    """One iteration while one size grows."""

    variable: str
    slope: float
    """of log seconds in log size, least squares"""
    points: list[Point]


class Report(TypedDict):
    """A whole run."""

    format: int
    machine: Machine
    rounds: int
    cases: list[CaseEntry]
    peaks: Peaks
    scaling: list[Curve]


def read_report(path: Path) -> Report:
    """A report from its file; refused if it is not one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BenchError(f"{path} is no report of gind bench (format {FORMAT}). Measure again with --json.")
    problem = check(content, Report)
    if problem:
        raise BenchError(f"{path} is no report of gind bench: {problem}.")
    return cast(Report, content)


def check(value: Any, kind: Any, where: str = "report") -> str:
    """The first place where a value is not of its kind; "" if there is none."""
    if typing.is_typeddict(kind):
        return _check_table(value, kind, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return "" if any(not check(value, each) for each in arguments) else f"{where} is {value!r}"
    if origin is list and isinstance(value, list):
        found = (check(item, arguments[0], f"{where}[{i}]") for i, item in enumerate(value))
        return next(filter(None, found), "")
    if origin is dict and isinstance(value, dict):
        found = (check(item, arguments[1], f"{where}.{key}") for key, item in value.items())
        return next(filter(None, found), "")
    expected = {float: (float, int), type(None): (type(None),)}.get(kind, (origin or kind,))
    good = isinstance(value, expected) and (kind is bool or not isinstance(value, bool))
    return "" if good else f"{where} is {value!r}"


def _check_table(value: Any, table: Any, where: str) -> str:
    if not isinstance(value, dict):
        return f"{where} is {value!r}"
    fields = typing.get_type_hints(table)
    other = (value.keys() ^ fields.keys()) - (table.__optional_keys__ - value.keys())
    if other:
        return f"{where} has other fields ({', '.join(sorted(other))})"
    found = (check(item, fields[name], f"{where}.{name}") for name, item in value.items())
    return next(filter(None, found), "")
