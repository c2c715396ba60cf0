"""Log lines: one event each, with its facts as keys; text for people or JSON for machines, always to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Any

import msgspec
import structlog

from process.threads import Failure


def configure(level: str, form: str) -> None:
    """Also takes what the standard library's loggers (gunicorn, kubernetes) have to say."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = [structlog.processors.format_exc_info] if form == "json" else []
    last.append(
        structlog.processors.JSONRenderer(serializer=lambda event, **_: msgspec.json.encode(event).decode())
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Every request of every client, at debug: nothing of it is about us.
    for name in ("urllib3", "kubernetes"):
        logging.getLogger(name).setLevel(logging.INFO)


def thread_failed(failure: Failure) -> None:
    """A thread's round that raised; the thread goes on."""
    structlog.get_logger("threads").error(
        "a thread's round failed",
        thread=failure.thread,
        error=str(failure.error),
        next_try_in_s=round(failure.wait_s, 2),
        exc_info=failure.error,
    )
