"""All simulated nodes: one object on one asyncio loop, meant for a process of its own (`remote.Remote`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from benchmarks.cluster.nodes.audit import Overcommitment
from benchmarks.cluster.nodes.node import Landing, Order, SimulatedNode
from benchmarks.cluster.nodes.observers import Calls, reported_flows
from benchmarks.cluster.nodes.population import NodeSpec
from benchmarks.cluster.nodes.stream import Stream
from numakin.wire import report_pb2 as pb
from numakin.wire import report_pb2_grpc as rpc

PATIENCE_S = 120.0
"""How long the extender may take to acknowledge; a loaded machine needs a hundredth of that for one report."""

OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    # Else a channel that lost its server dials at most every two minutes; an enforcer takes a new one for each dial.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class Terms:
    """kubelet_s: seconds that a kubelet takes at least from a binding to CreateContainer; a nomination that has not
    come by then is late. channels: gRPC connections that all nodes share.
    """

    address: str
    kubelet_s: float = 1.0
    heartbeat_s: float = 5.0
    channels: int = 8


class Fleet:
    """Nothing is dialled before `dial`."""

    def __init__(self, specs: Sequence[NodeSpec], terms: Terms) -> None:
        self._terms = terms
        channels = [
            grpc.aio.insecure_channel(terms.address, OPTIONS) for _ in range(max(1, min(terms.channels, len(specs))))
        ]
        stubs = [rpc.ReportsStub(channel) for channel in channels]
        self._streams = {
            spec.name: Stream(SimulatedNode(spec), stubs[at % len(stubs)], terms.heartbeat_s)
            for at, spec in enumerate(specs)
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._lost: set[str] = set()
        self._over: dict[tuple[str, int, str], Overcommitment] = {}

    async def dial(self) -> None:
        for name, stream in self._streams.items():
            self._tasks[name] = asyncio.create_task(stream.run())

    async def settled(self) -> list[str]:
        """Waits until every node has reported everything; the names of those that have not in time."""
        streams = [(name, stream) for name, stream in self._streams.items() if name not in self._lost]
        answers = await asyncio.gather(*(stream.until_acknowledged(PATIENCE_S) for _, stream in streams))
        return [name for (name, _), settled in zip(streams, answers, strict=True) if not settled]

    async def run(self, orders: Sequence[Order]) -> list[Landing]:
        """The containers are created in this order, once each pod's nomination is here or its kubelet is ready."""
        await asyncio.gather(*(self.nominated(order.node, order.uid, order.bound_at) for order in orders))
        landings = []
        for order in orders:
            stream = self._streams[order.node]
            landings.append(stream.node.create(order, stream.nominated_at.get(order.uid)))
            self._audit(stream.node)
            stream.changed()
        await self._acknowledged({order.node for order in orders})
        return landings

    async def nominated(self, node: str, uid: str, bound_at: float) -> bool:
        """Waits for a pod's nomination, at most until its kubelet is ready to create the container."""
        stream = self._streams[node]
        left = bound_at + self._terms.kubelet_s - time.monotonic()
        return await stream.until(lambda: uid in stream.nominated_at, max(0.0, left))

    async def stop(self, pods: Sequence[tuple[str, str]]) -> None:
        """pods: node and uid of each."""
        for node, uid in pods:
            if node not in self._lost:
                self._streams[node].node.stop(uid)
                self._streams[node].changed()
        await self._acknowledged({node for node, _ in pods if node not in self._lost})

    async def lose(self, nodes: Sequence[str]) -> None:
        """Their streams break off, and no enforcer reconnects."""
        for name in nodes:
            self._lost.add(name)
            self._tasks.pop(name).cancel()

    async def restart(self, nodes: Sequence[str]) -> list[str]:
        """New enforcers on these nodes; the pods whose cpuset that changed."""
        changed = []
        for name in nodes:
            stream = self._streams[name]
            task = self._tasks.pop(name)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            before = stream.node.places()
            stream.node.start_enforcer()
            self._audit(stream.node)
            changed += [uid for uid, place in stream.node.places().items() if before[uid] != place]
            self._streams[name] = stream.renewed()
            self._tasks[name] = asyncio.create_task(self._streams[name].run())
        await self._acknowledged(set(nodes))
        return changed

    async def talk(self, calls: Sequence[Calls], seconds: float) -> None:
        """The observers report what they counted in so many seconds."""
        homes = {uid: node for uid, (node, _) in (await self.places()).items()}
        for node, flows in reported_flows(calls, homes).items():
            traffic = pb.Traffic(seconds=seconds, scale=1.0, flows=flows, collector="simulated")
            self._streams[node].send(pb.FromEnforcer(traffic=traffic))

    async def places(self) -> dict[str, tuple[str, str]]:
        """Node and NUMA nodes by pod uid."""
        return {
            uid: (name, place)
            for name, stream in self._streams.items()
            if name not in self._lost
            for uid, place in stream.node.places().items()
        }

    async def errors(self) -> list[str]:
        """What enforcers raised where they had to answer."""
        return [text for stream in self._streams.values() for text in stream.node.errors]

    async def overcommitments(self) -> list[Overcommitment]:
        for name, stream in self._streams.items():
            if name not in self._lost:
                self._audit(stream.node)
        return list(self._over.values())

    async def could_hold(self, nodes: Sequence[str], cpu_milli: int, memory: int) -> dict[str, list[int]]:
        """By node its NUMA nodes with room for one more such container."""
        return {name: self._streams[name].node.could_hold(cpu_milli, memory) for name in nodes}

    def _audit(self, node: SimulatedNode) -> None:
        for overcommitment in node.audit():
            self._over.setdefault(
                (overcommitment.node, overcommitment.numa_nodes, overcommitment.resource), overcommitment
            )

    async def _acknowledged(self, nodes: set[str]) -> None:
        streams = [self._streams[node] for node in sorted(nodes)]
        await asyncio.gather(*(stream.until_acknowledged(PATIENCE_S) for stream in streams))
