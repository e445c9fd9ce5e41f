"""What a report says about the code that made it."""

import subprocess
from pathlib import Path

import pytest

from gind.experiments.made_with import commit, versions


def git(place: Path, *command: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *command], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    place = tmp_path / "src"
    place.mkdir()
    (place / "a.py").write_text("a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "-qm", "first")
    commit.cache_clear()
    return place


def test_the_last_commit_of_the_sources_counts(sources: Path) -> None:
    first = git(sources, "rev-parse", "--short=12", "HEAD")
    (sources.parent / "results").write_text("x")
    git(sources.parent, "add", "results")
    git(sources.parent, "commit", "-qm", "second, of something else")
    assert commit(sources) == first


def test_changes_of_the_sources_are_told(sources: Path) -> None:
    first = git(sources, "rev-parse", "--short=12", "HEAD")
    (sources / "a.py").write_text("b")
    assert commit(sources) == f"{first}+"


def test_without_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
    commit.cache_clear()
    assert versions()["threads"].isdigit()
