"""A program's options: a frozen dataclass, read from the command line, the environment and a TOML file, the strongest
first. A field's name with dashes is the flag and the file's key, in capitals after NUMAKIN_ the variable. Standard
library only: the hook reads its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, fields
from typing import Any, TypeVar, get_args, get_type_hints

from numakin.process.files import read_regular, worded

PREFIX = "NUMAKIN_"

Options = TypeVar("Options")

_SWITCHES = {"true": True, "1": True, "false": False, "0": False}
_PARSERS: Mapping[Any, Callable[[str], Any]] = {int: int, float: float, bool: lambda text: _SWITCHES[text.lower()]}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class ConfigError(ValueError):
    """An option that can't be taken, worded for the operator."""


def option(text: str, value: str = "", default: Any = "") -> Any:
    """A field. text: its help. value: what it takes, in a word; empty where its type says that."""
    return field(default=default, metadata={"value": value or None, "help": text})


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def add_to(parser: argparse.ArgumentParser, options: type[Any]) -> None:
    """A flag for each field; None where not given, so that the environment and the file can speak."""
    kinds = get_type_hints(options)
    for each in fields(options):
        text, kind, default = each.metadata["help"], kinds[each.name], each.default
        if kind is bool:
            parser.add_argument(flag(each.name), action=argparse.BooleanOptionalAction, default=None, help=text)
            continue
        shown = text if "default:" in text or not default else f"{text} (default: {default})"
        choices = get_args(kind) or None
        parser.add_argument(flag(each.name), metavar=each.metadata["value"], choices=choices, help=shown)


def read_file(path: str) -> str:
    try:
        return read_regular(path).decode()
    except OSError as error:
        raise ConfigError(f"config file {worded(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"config file {path}: not text: {error}") from error


def read(
    options: type[Options],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    text: str,
    file: str,
    *,
    quoted: bool = True,
) -> Options:
    """From all three places. flags: by field name, None where not given. text: of the file; quoted: whether a number
    may be written as text there. ConfigError names what can't be taken, and where it is.
    """
    kinds = get_type_hints(options)
    values = {}
    for key, value in _entries(text, file, [*kinds]) if text else ():
        name = key.replace("-", "_")
        values[name] = _converted(kinds[name], value, f"{file}: {key}", quoted=quoted)
    for name, kind in kinds.items():
        if (given := environment.get(variable := PREFIX + name.upper())) is not None:
            values[name] = _converted(kind, given, f"environment variable {variable}")
        if (given := flags.get(name)) is not None:
            values[name] = _converted(kind, given, flag(name))
    return options(**values)


def _entries(text: str, file: str, known: list[str]) -> Iterator[tuple[str, Any]]:
    import tomllib  # noqa: PLC0415 - 3 ms of a start, and most have no file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error
    for key in table:
        if key.replace("-", "_") not in known:
            raise ConfigError(f"{file}: unknown key {key!r}; known: {', '.join(known).replace('_', '-')}")
    yield from table.items()


def _converted(kind: Any, value: Any, where: str, *, quoted: bool = True) -> Any:
    choices = get_args(kind)
    if value in choices or type(value) is kind or (kind is float and type(value) is int):
        return value if choices else kind(value)
    if quoted and isinstance(value, str) and kind in _PARSERS:
        with suppress(KeyError, ValueError):
            return _PARSERS[kind](value)
    raise ConfigError(f"{where}: {value!r} is not {_KINDS.get(kind) or 'one of ' + ', '.join(choices)}")
