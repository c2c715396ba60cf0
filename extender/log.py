"""The extender's log: structlog in front, the lines of `numakin.process.log` behind, so that both programs' logs read
alike.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog

from numakin.process import log
from numakin.process.threads import Failure


def configure(level: str, form: str) -> None:
    """Also takes what the standard library's loggers (kubernetes) have to say."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _recorded],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    log.set_up(level, form)
    # Every request of every client, at debug: nothing of it is about us.
    for name in ("urllib3", "kubernetes"):
        logging.getLogger(name).setLevel(logging.INFO)


def _recorded(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The arguments of the standard library's logger."""
    fields = dict(event)
    return {"msg": fields.pop("event"), "exc_info": fields.pop("exc_info", None), "extra": {"fields": fields}}


def thread_failed(failure: Failure) -> None:
    """A thread's round that raised; the thread goes on."""
    structlog.get_logger("threads").error(
        "a thread's round failed",
        thread=failure.thread,
        error=failure.error,
        next_try_in_s=round(failure.wait_s, 2),
        exc_info=failure.error,
    )
