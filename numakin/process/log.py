"""The log of either program: one line an event, with its fields, as text for people or as JSON for machines. Standard
library only: the hook uses it.

Both forms have the same keys in the same order: time (UTC), level, logger, event, then the event's own, and `traceback`
last where there is one. In JSON numbers, booleans and lists stay what they are.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections.abc import Mapping
from types import TracebackType

from numakin.process.threads import Failure


class Log:
    """A logger whose events carry fields: `log.info("container pinned", pod="ns/name", cpus="0-3")`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, cause: BaseException | None = None, /, **fields: object) -> None:
        """cause: what was raised; None: what is being handled just now."""
        self._write(logging.ERROR, event, fields, cause=cause or True)

    def failure(self, failure: Failure, *known: type[Exception]) -> None:
        """A thread's round that raised. known: errors that say all themselves."""
        fields = {"thread": failure.thread, "error": failure.error, "next_try_in_s": round(failure.wait_s, 2)}
        if isinstance(failure.error, known):
            self._write(logging.WARNING, "a thread's round failed", fields)
        else:
            self._write(logging.ERROR, "a thread's round failed", fields, cause=failure.error)

    def _write(self, level: int, event: str, fields: dict[str, object], *, cause: BaseException | bool = False) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"fields": fields}, exc_info=cause)


class TextFormatter(logging.Formatter):
    """`2026-01-02T03:04:05.678Z INFO hook container pinned pod=ns/name cpus=0-3`."""

    def format(self, record: logging.LogRecord) -> str:
        event = " ".join(record.getMessage().splitlines())
        fields = "".join(f" {key}={_quoted(value)}" for key, value in _fields(self, record).items())
        return f"{_stamp(record)} {record.levelname} {record.name} {event}{fields}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        head = {
            "time": _stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields = {key: _json(value) for key, value in _fields(self, record).items()}
        return json.dumps(head | {f"{key}_" if key in head else key: value for key, value in fields.items()})


def set_up(level: str, log_format: str) -> None:
    """Of a program whose log is read. An uncaught exception is an event too."""
    to_stderr(level, log_format)
    sys.excepthook = _uncaught


def to_stderr(level: str, log_format: str) -> None:
    """Where a container's log is read."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        logging.getLogger("main").critical("ended by an exception", exc_info=(kind, error, trace))


def _stamp(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z"


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, object]:
    fields = dict(getattr(record, "fields", {}))
    if record.exc_info and record.exc_info[0] is not None:
        fields["traceback"] = formatter.formatException(record.exc_info)
    return fields


def _json(value: object) -> object:
    """The value as JSON; what JSON has no type for, as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json(item) for item in value]
    return str(value)


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text) if not text or any(char in ' "=' or not char.isprintable() for char in text) else text
