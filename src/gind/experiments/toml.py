"""TOML in and out; every error names the file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from gind.experiments.keys import ConfigError

__all__ = ["dump_toml", "parse_toml", "parse_value", "read_toml"]


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The table of a TOML text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}.") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError as error:
        raise ConfigError(f"There is no file {path}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error


def parse_value(text: str) -> Any:
    """The value of a command line's key=value: TOML where it is TOML, a text otherwise (solver=anderson)."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def dump_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML."""
    return tomli_w.dumps(table)
