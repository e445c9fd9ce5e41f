"""Keys of a configuration, read off the signatures of what they configure; values checked and turned into objects.

Every parameter of a model or of `FitOptions` is a key. A value of TOML becomes what the parameter's type says. An
object is written by its kind, with its own parameters as keys below:

    solver = "anderson"                          Anderson()
    solver = { kind = "anderson", memory = 8 }   Anderson(memory=8)
    stop = { tol = 1e-6 }                        Stop(tol=1e-6)
"""

import dataclasses
import functools
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from gind.datasets.table import nearest
from gind.errors import UserError

__all__ = ["ConfigError", "Key", "Kinds", "keys_of", "parse", "plain"]

Kinds = Mapping[type, Mapping[str, type]]


class ConfigError(UserError, ValueError):
    """A configuration that cannot be; the message names the key and says what was expected."""


@dataclasses.dataclass(frozen=True)
class Key:
    """A parameter: its name, type and default."""

    name: str
    type: Any
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is inspect.Parameter.empty


def keys_of(target: Callable[..., Any], leave_out: Iterable[str] = ()) -> dict[str, Key]:
    """The parameters of a class or function by name, without those that gather the rest (*args, **kwargs)."""
    left_out = set(leave_out)
    return {key.name: key for key in _signature(target) if key.name not in left_out}


@functools.cache  # thousands of reports are compared with the keys of a few dozen classes
def _signature(target: Callable[..., Any]) -> tuple[Key, ...]:
    function: Any = vars(target).get("__init__", target) if isinstance(target, type) else target
    hints = typing.get_type_hints(function)
    gather = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(target).parameters.values() if p.kind not in gather]
    return tuple(Key(p.name, hints.get(p.name, Any), _default(target, p)) for p in parameters)


def _default(target: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The default of a parameter; a dataclass hides those of default_factory."""
    if dataclasses.is_dataclass(target):
        for field in dataclasses.fields(target):
            if field.name == parameter.name and field.default_factory is not dataclasses.MISSING:
                return field.default_factory()
    return parameter.default


def parse(name: str, kind: Any, value: Any, kinds: Kinds) -> Any:
    """A value of TOML as an object of a type; refused with the name of the key."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _parse_union(name, arguments, value, kinds)
    if origin is Literal:
        if value not in arguments or isinstance(value, bool):
            raise ConfigError(f"{name} must be one of {', '.join(map(str, arguments))}, got {value!r}.")
        return value
    if origin is tuple:
        return _parse_tuple(name, arguments, value, kinds)
    if kind in (bool, int, float, str):
        return _parse_scalar(name, kind, value)
    if isinstance(kind, type) and (kind in kinds or dataclasses.is_dataclass(kind)):
        return _parse_object(name, kind, value, kinds)
    raise ConfigError(f"{name} cannot be set from a configuration.")


def _parse_union(name: str, arguments: tuple[Any, ...], value: Any, kinds: Kinds) -> Any:
    if value == "none" and type(None) in arguments:
        return None
    errors = []
    for argument in arguments:
        if argument is not type(None):
            try:
                return parse(name, argument, value, kinds)
            except ConfigError as error:
                errors.append(str(error))
    extra = ' ("none" for none)' if type(None) in arguments else ""
    raise ConfigError(errors[0].removesuffix(".") + f"{extra}.")


def _parse_tuple(name: str, arguments: tuple[Any, ...], value: Any, kinds: Kinds) -> tuple[Any, ...]:
    expected = arguments[:1] * len(value) if isinstance(value, list | tuple) and arguments[-1] is ... else arguments
    if not isinstance(value, list | tuple) or len(value) != len(expected):
        raise ConfigError(f"{name} must be a list of {len(arguments)} values, got {value!r}.")
    return tuple(parse(name, kind, item, kinds) for kind, item in zip(expected, value, strict=True))


def _parse_scalar(name: str, kind: type, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        raise ConfigError(f"{name} must be {words[kind]}, got {value!r}.")
    if isinstance(value, float) and math.isnan(value):
        raise ConfigError(f"{name} must be a number, got nan.")
    return value


def _parse_object(name: str, kind: type, value: Any, kinds: Kinds) -> Any:
    if isinstance(value, kind):
        return value
    table = {"kind": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name} must be a kind or a table, got {value!r}.")
    chosen: Any = kind
    if kind in kinds:
        choice = table.get("kind")
        if not isinstance(choice, str) or choice not in kinds[kind]:
            said = f"got {choice!r}" if choice is not None else "no kind is given"
            raise ConfigError(f"{name} must be one of {', '.join(kinds[kind])}, {said}.")
        chosen = kinds[kind][choice]
        table = {key: item for key, item in table.items() if key != "kind"}
    known = keys_of(chosen)
    for key in table:
        if key not in known:
            there = nearest(key, known) if known else f"{name} of this kind has no keys."
            raise ConfigError(f"There is no key {name}.{key}. {there}")
    missing = [key.name for key in known.values() if key.required and key.name not in table]
    if missing:
        raise ConfigError(f"{name} needs {', '.join(f'{name}.{m}' for m in missing)}.")
    arguments = {key: parse(f"{name}.{key}", known[key].type, item, kinds) for key, item in table.items()}
    try:
        return chosen(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error


def plain(value: Any, kinds: Kinds) -> Any:
    """The inverse of `parse`: an object as a value of TOML."""
    if value is None:
        return "none"
    if isinstance(value, tuple | list):
        return [plain(item, kinds) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    fields = {f.name: plain(getattr(value, f.name), kinds) for f in dataclasses.fields(value)}
    for choices in kinds.values():
        for name, kind in choices.items():
            if type(value) is kind:
                return {"kind": name, **fields}
    return fields
