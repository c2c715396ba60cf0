"""One node's report stream over gRPC's asyncio: what `enforcer.report.stream` does with a thread, for thousands."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc

from benchmarks.cluster.nodes.node import SimulatedNode
from enforcer.report.stream import FIRST_WAIT_S, LONGEST_WAIT_S
from numakin.process.version import VERSION
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc


class Stream:
    """run() dials until it is cancelled. nominated_at: when each pod's nomination came, seconds, monotonic, by uid."""

    def __init__(self, node: SimulatedNode, stub: rpc.ReportsStub, heartbeat_s: float) -> None:
        self.node = node
        self.connected = False
        self.nominated_at: dict[str, float] = {}
        self._stub, self._heartbeat_s = stub, heartbeat_s
        self._acked = -1
        self._extra: list[pb.FromEnforcer] = []
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def acknowledged(self) -> bool:
        """Whether the extender has acknowledged everything."""
        return self.connected and self._acked == self.node.agent.occupancy.generation

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether it holds within that time; checked after each message."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        return holds()

    async def until_acknowledged(self, seconds: float) -> bool:
        return await self.until(lambda: self.acknowledged, seconds)

    def renewed(self) -> Stream:
        """For the node's next enforcer, once this one's run() has ended."""
        return Stream(self.node, self._stub, self._heartbeat_s)

    def changed(self) -> None:
        """The mirror has news."""
        self._wake.set()

    def send(self, message: pb.FromEnforcer) -> None:
        """A message that is not the mirror's; dropped while there is no stream."""
        if self.connected:
            self._extra.append(message)
            self._wake.set()

    async def run(self) -> None:
        wait = FIRST_WAIT_S
        while True:
            try:
                await self._speak()
            except grpc.RpcError:
                wait = FIRST_WAIT_S if self.connected else min(LONGEST_WAIT_S, wait * 2)
            self.connected, self._acked = False, -1
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))

    async def _speak(self) -> None:
        call = self._stub.Stream()
        welcome: list[pb.Welcome] = []
        writer: asyncio.Task[None] | None = None
        try:
            await call.write(self.node.backlog.hello(VERSION))
            async for message in call:
                self._received(message, welcome)
                if writer is None and self.connected:
                    writer = asyncio.create_task(self._write(call, welcome))
        finally:
            if writer is not None:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
            call.cancel()

    def _received(self, message: pb.ToEnforcer, welcome: list[pb.Welcome]) -> None:
        kind = message.WhichOneof("message")
        if kind == "welcome":
            self.connected = True
            if message.welcome.resume:
                self._acked = self.node.backlog.hello(VERSION).hello.acked_generation
            welcome.append(message.welcome)
            self._wake.set()
        elif kind == "ack":
            self._acked = message.ack.generation
            self.node.backlog.acknowledged(message.ack)
        elif kind == "expect":
            self.nominated_at[message.expect.pod] = time.monotonic()
            self.node.expect(message.expect)
            self._wake.set()
        self._changed.set()

    async def _write(self, call: Any, welcome: list[pb.Welcome]) -> None:
        while True:
            await self._written(call, welcome)
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    await self._wake.wait()
            except TimeoutError:
                await call.write(self.node.backlog.heartbeat())
            self._wake.clear()

    async def _written(self, call: Any, welcome: list[pb.Welcome]) -> None:
        while welcome:
            self.node.backlog.welcomed(welcome.pop(0))
        for news in self.node.backlog.changes():
            await call.write(news)
        while self._extra:
            await call.write(self._extra.pop(0))
