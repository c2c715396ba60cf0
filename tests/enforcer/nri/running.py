"""A plugin that runs on its loop in a thread of the test's own, as it would in its process."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from enforcer.nri.handlers import Handlers
from enforcer.nri.identity import Identity
from enforcer.nri.plugin import Plugin
from enforcer.nri.session import Stage
from enforcer.nri.transport import External
from lab.standins.patience import PATIENCE_S
from numakin.process.loop import Loop


class Running:
    """`stages` is what on_stage heard. `do(function)` runs it in the loop's thread, as a control socket would."""

    def __init__(
        self, path: Path, handlers: Handlers, *, index: str = "10", name: str = "numakin", **options: Any
    ) -> None:
        self.loop = Loop()
        self.stages: list[Stage] = []
        self._heard = threading.Condition()
        self.plugin = Plugin(
            self.loop, Identity(index, name), handlers, External(str(path)), on_stage=self._hear, **options
        )
        self._asked: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._wake, self._woken = os.pipe()
        self.loop.register(self._wake, self._run_asked)
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self.do(lambda: (self.plugin.close(), self.loop.stop()))
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        self.loop.unregister(self._wake)
        self.loop.close()
        os.close(self._wake)
        os.close(self._woken)

    def do(self, function: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        self._asked.append((function, future))
        os.write(self._woken, b"!")
        return future.result(PATIENCE_S)

    def wait_for(self, *stages: Stage) -> None:
        """Until the session has gone through at least these stages, in this order, since the start."""

        def reached() -> bool:
            received = iter(self.stages)
            return all(stage in received for stage in stages)

        with self._heard:
            assert self._heard.wait_for(reached, PATIENCE_S), self.stages

    def _run(self) -> None:
        self.plugin.start()
        self.loop.run()

    def _hear(self, stage: Stage) -> None:
        with self._heard:
            self.stages.append(stage)
            self._heard.notify_all()

    def _run_asked(self) -> None:
        os.read(self._wake, 1)
        function, future = self._asked.pop(0)
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001 - raised again in the test's thread
            future.set_exception(error)
