"""Plays kube-proxy for one Service: an address that leads to the first replica that takes the connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress

CHUNK = 65536


class Service:
    """backends: HOST:PORT of the replicas. address: known once it was started."""

    def __init__(self, backends: Sequence[str]) -> None:
        self.address = ""
        self._backends = [backend.rpartition(":")[::2] for backend in backends]
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="service", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._up.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1")
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._up.set()
        await self._stopping.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """To one replica as long as the connection lives, as with ClientIP affinity."""
        for host, port in self._backends:
            with suppress(OSError):
                backend_reader, backend_writer = await asyncio.open_connection(host, int(port))
                await asyncio.gather(_copied(reader, backend_writer), _copied(backend_reader, writer))
                return
        writer.close()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, to its end."""
    with suppress(OSError, asyncio.CancelledError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
