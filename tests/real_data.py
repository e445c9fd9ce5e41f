"""The real datasets for the tests: where they are, and each loaded once per process."""

import functools
import os
import pathlib
import shutil

import pytest

from gind.datasets import DATASETS, Dataset, Statistics, load, on_disk, statistics

ROOT = pathlib.Path(os.environ.get("GIND_DATA") or pathlib.Path(__file__).parents[2] / "shared" / "data")

STORED = [name for name, entry in DATASETS.items() if entry.files]
GENERATED = [name for name, entry in DATASETS.items() if not entry.files]


def need(name: str) -> None:
    """Skips the test when `name` is not on disk."""
    if not on_disk(name, ROOT):
        pytest.skip(f"{name} is not under {ROOT} (set GIND_DATA to a directory that holds it)")


@functools.cache
def _loaded(name: str) -> Dataset:
    return load(name, ROOT if DATASETS[name].files else None)


@functools.cache
def _counted(name: str) -> Statistics:
    return statistics(_loaded(name))


def real(name: str) -> Dataset:
    """The dataset, shared: do not change it."""
    need(name)
    return _loaded(name)


def counted(name: str) -> Statistics:
    """Its statistics."""
    need(name)
    return _counted(name)


def copy_files(name: str, folder: pathlib.Path) -> None:
    """The files of `name` in a directory of the test's own."""
    need(name)
    for file in DATASETS[name].files:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file.path, folder / file.path)
