"""One answer to where files are kept, whatever they are."""

from pathlib import Path

import pytest

from gind.cache import cache_directory
from gind.errors import UserError


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("GIND_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def both() -> tuple[Path, Path]:
    return cache_directory("datasets"), cache_directory("kernels")


def test_in_the_home_directory(home: Path) -> None:
    assert both() == (home / ".cache" / "gind" / "datasets", home / ".cache" / "gind")


def test_where_the_system_keeps_caches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert both() == (home / "xdg" / "gind" / "datasets", home / "xdg" / "gind")


def test_as_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    monkeypatch.setenv("GIND_CACHE", "~/mine")
    assert both() == (home / "mine", home / "mine")


def test_nobody_is_at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIND_CACHE", "~nobody-of-that-name/mine")
    with pytest.raises(UserError, match=r"no directory to keep datasets in .* Set GIND_CACHE"):
        cache_directory("datasets")
