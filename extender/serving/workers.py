"""Supervised threads that answer requests of one kind, so that no kind waits for another's."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from typing import TypeVar

from numakin.process.threads import IDLE, IDLE_S, Threads

Result = TypeVar("Result")


class Workers:
    """count threads, called name-1 and so on."""

    def __init__(self, name: str, count: int, threads: Threads) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = [threads.thread(f"{name}-{number + 1}", self._round) for number in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float) -> None:
        for thread in self._threads:
            thread.stop()
            self._jobs.put(None)
        for thread in self._threads:
            thread.stop(timeout_s)

    def put(self, work: Callable[[], None]) -> None:
        """To be done by the next free thread; nobody waits for it."""
        self._jobs.put(work)

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, done by the next free thread. One that nobody waits for any more is left out."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()

        def job() -> None:
            if done.cancelled():
                return
            try:
                result = work()
            except Exception as failed:  # noqa: BLE001 - raised where it is awaited
                loop.call_soon_threadsafe(_fail, done, failed)
            else:
                loop.call_soon_threadsafe(_finish, done, result)

        self._jobs.put(job)
        return await done

    def _round(self) -> object:
        try:
            job = self._jobs.get(timeout=IDLE_S)
        except queue.Empty:
            return IDLE
        if job is not None:
            job()
        return None


def _finish(done: asyncio.Future[Result], result: Result) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: asyncio.Future[Result], failed: Exception) -> None:
    if not done.done():
        done.set_exception(failed)
