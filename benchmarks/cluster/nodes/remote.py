"""An object in a process of its own, called over a pipe: method names with arguments, answered in order."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

CLOSE_S = 10.0


class Remote:
    """make: what builds the object, in the new process (a class or a module's function); its methods may be
    coroutines, on one loop.
    """

    def __init__(self, make: Callable[..., Any], *arguments: Any) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, make, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """What the method returns; RuntimeError with its error's text when it failed."""
        self._pipe.send((method, arguments))
        answer, failure = self._pipe.recv()
        if failure:
            raise RuntimeError(f"{method}: {failure}")
        return answer

    def close(self) -> None:
        self._pipe.close()
        self._process.join(CLOSE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@dataclass(slots=True)
class _Server:
    pipe: Connection
    served: Any

    async def answer(self) -> None:
        """Until the other end closes."""
        while True:
            try:
                method, arguments = await asyncio.to_thread(self.pipe.recv)
            except EOFError:
                return
            try:
                answer = getattr(self.served, method)(*arguments)
                self.pipe.send((await answer if inspect.isawaitable(answer) else answer, ""))
            except Exception as error:  # noqa: BLE001 - passed to the caller, who raises it
                self.pipe.send((None, f"{type(error).__name__}: {error}"))


def _serve(pipe: Connection, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Exits at once: closing thousands of tasks and channels one by one would serve nothing."""
    try:
        asyncio.run(_made(pipe, make, arguments))
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


async def _made(pipe: Connection, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # On the loop: what it makes may want one.
    await _Server(pipe, make(*arguments)).answer()
