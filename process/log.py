"""The enforcer's log: one line an event, with its fields, as text for people or as JSON for machines. Standard
library only: the hook uses it.
"""

from __future__ import annotations

import json
import logging
import sys
import time

from process.threads import Failure


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

    def exception(self, event: str, **fields: object) -> None:
        self._write(logging.ERROR, event, fields, cause=True)

    def failure(self, failure: Failure, *known: type[Exception]) -> None:
        """A thread's round that raised. known: errors that say all themselves."""
        fields = {"thread": failure.thread, "error": failure.error, "next_try_in_s": failure.wait_s}
        if isinstance(failure.error, known):
            self._write(logging.WARNING, "a thread's round failed", fields)
        else:
            self._write(logging.ERROR, "a thread's round failed", fields, cause=failure.error)

    def _write(self, level: int, event: str, fields: dict[str, object], *, cause: BaseException | bool = False) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"fields": fields}, exc_info=cause)


class TextFormatter(logging.Formatter):
    """`2026-01-02T03:04:05.678 INFO hook container pinned pod=ns/name cpus=0-3`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={_quoted(value)}" for key, value in getattr(record, "fields", {}).items())
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{_stamp(record)} {record.levelname} {record.name} {record.getMessage()}{fields}{trace}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line.update({key: str(value) for key, value in getattr(record, "fields", {}).items()})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up(level: str, log_format: str) -> None:
    """To stderr, where a container's log is read."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _stamp(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(record.created))}.{int(record.msecs):03}"


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text) if not text or any(char in text for char in ' "=\n') else text
