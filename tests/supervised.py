"""Supervised threads for tests: a round that raises fails the test, as any other thread's exception does."""

import threading

from numakin.process.threads import Failure, Threads


def threads() -> Threads:
    return Threads(_raised)


def _raised(failure: Failure) -> None:
    error = failure.error
    threading.excepthook(
        threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
    )
