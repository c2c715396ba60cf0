"""Plays kube-proxy for one Service: an address that leads to the first replica that takes the connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

CHUNK = 65536


class Service:
    """backends: HOST:PORT of the replicas. address: known once it was started. errors: what was not foreseen."""

    def __init__(self, backends: Sequence[str]) -> None:
        self.address = ""
        self.errors: list[str] = []
        self._backends = [backend.rpartition(":")[::2] for backend in backends]
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name="service", daemon=True)
        self._listening: Future[str] = Future()

    def start(self) -> None:
        """OSError where it can't listen."""
        self._thread.start()
        self.address = self._listening.result()

    def stop(self) -> None:
        self._stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - nothing else would see what a thread raises
            if self._listening.done():
                self.errors.append(f"the Service: {type(error).__name__}: {error}")
            else:
                self._listening.set_exception(error)

    async def _serve(self) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1")
        self._stop = partial(loop.call_soon_threadsafe, stopping.set)
        self._listening.set_result(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await stopping.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._forwarded(reader, writer)
        except Exception as error:  # noqa: BLE001 - other connections go on
            self.errors.append(f"a connection to the Service: {type(error).__name__}: {error}")
        finally:
            writer.close()

    async def _forwarded(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """To one replica as long as the connection lives, as with ClientIP affinity."""
        for host, port in self._backends:
            with suppress(OSError):
                backend_reader, backend_writer = await asyncio.open_connection(host, int(port))
                await asyncio.gather(_copied(reader, backend_writer), _copied(backend_reader, writer))
                return


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, to its end."""
    with suppress(OSError, asyncio.CancelledError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
