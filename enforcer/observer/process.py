"""The observer: the process that does all that may be slow, so that the hook never waits. It reads the hook's socket,
streams to every replica of the extender, and serves metrics and health.

    python -m enforcer.observer RUN_DIR
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from enforcer.machine import pci
from enforcer.machine.cgroup import CgroupTree
from enforcer.machine.cpuset_owners import cpuset_owners
from enforcer.machine.errors import MachineError
from enforcer.observer.census import Census
from enforcer.observer.cpu_use import CpuUse, Uses
from enforcer.observer.device_watch import DeviceWatch
from enforcer.observer.endpoint import pages
from enforcer.observer.endpoint.attachment import SILENT_S, Attachment
from enforcer.observer.endpoint.counters import Counters, secured
from enforcer.observer.endpoint.port import Port, PortError
from enforcer.observer.hook_link import HookLink
from enforcer.observer.in_words import in_words
from enforcer.observer.member_memory import MemberMemory
from enforcer.observer.podresources_server import PodResourcesServer, SocketError
from enforcer.observer.traffic_loop import Outlets, TrafficLoop
from enforcer.report.backlog import ReportBacklog
from enforcer.report.health import HealthNews
from enforcer.report.mirror import Mirror
from enforcer.report.nominating_replica import NominatingReplica
from enforcer.report.replicas import Replicas
from enforcer.report.stream import Endpoint, ReportStream
from enforcer.settings.config import PLUGIN_NAME, Config
from numakin.placement.model.topology import Machine
from numakin.placement.traffic.window import BadRecording
from numakin.process import log, supervisor
from numakin.process.log import Log
from numakin.process.memory import share_one_arena
from numakin.process.pulse import BEAT_S, beat
from numakin.process.signals import received
from numakin.process.threads import Backoff, Failure, Threads, running, worded
from numakin.process.version import VERSION
from numakin.wire import bounds, convert
from numakin.wire import local_pb2 as local
from numakin.wire import report_pb2 as pb

logger = Log("observer")

PORT_RETRY = Backoff(first_s=0.5, longest_s=10.0)
"""Between two tries to have the metrics port."""

STOP_S = 2.0
"""For each part's threads, at the end."""


class Observer:
    """Wires the link, the mirror, the streams and the web server."""

    def __init__(self, run_dir: Path) -> None:
        self._lock = threading.Lock()
        self.threads = Threads(_failed)
        self._link = HookLink(run_dir / "hook.sock", self._received, self._lost, self.threads)
        self._pulse = self.threads.thread("pulse", self._beat)
        self.mirror = Mirror()
        self._replicas: Replicas | None = None
        self._begun = False
        self._session = ""
        self._namespaces: pb.Namespaces | None = None
        self._nominating = NominatingReplica()
        self._port: Port | None = None
        self.watching: TrafficLoop | None = None
        self._devices: DeviceWatch | None = None
        self._podresources: PodResourcesServer | None = None
        self.hook_present = False
        self.attachment = Attachment()
        self.census: Census | None = None
        self.memory: MemberMemory | None = None
        self.cpu_use: CpuUse | None = None
        self.counters = Counters()

    def run(self, signals: socket.socket) -> None:
        """Until something can be read from `signals`. Not until a handler of this thread's runs: the kernel may hand a
        signal to any thread, and one that waits for a lock is not woken then.
        """
        self._link.start()
        self._pulse.start()
        select.select([signals], [], [])
        for part in self._parts:
            part.stop()
        for part in self._parts:
            part.stop(STOP_S)

    @property
    def _parts(self) -> list[HookLink | Replicas | TrafficLoop | DeviceWatch | PodResourcesServer | Census | CpuUse]:
        """What has threads."""
        parts = (
            self._link, self._replicas, self.watching, self._devices, self._podresources, self.census, self.cpu_use,
        )  # fmt: skip
        return [part for part in parts if part is not None]

    @property
    def ready(self) -> tuple[bool, str]:
        """Ready is: the hook lives and the runtime has taken it as a plugin. A stale thread is named besides:
        containers are placed without it, by less knowledge.
        """
        if not self.hook_present:
            return False, "the hook process is not there"
        if self.attachment.silent_s > SILENT_S:
            return False, f"the hook process has reported nothing for {self.attachment.silent_s:.0f} s"
        with self._lock:
            if not self.mirror.registered:
                return False, "not registered with the container runtime"
        ago = self.attachment.confirmed_s_ago
        registered = "registered with the container runtime" + (
            f", confirmed {ago:.0f} s ago" if ago is not None else ""
        )
        return True, "; degraded: ".join(filter(None, (registered, self.degraded)))

    @property
    def degraded(self) -> str:
        """Which threads get nowhere, and extenders of another report format; empty when all is well."""
        skew = f"{self.skewed} extenders speak another report format: finish the upgrade" if self.skewed else ""
        return "; ".join(filter(None, (worded(self.threads.stale()), skew)))

    @property
    def skewed(self) -> int:
        """How many replicas of the extender speak another report format."""
        return self._replicas.skewed if self._replicas is not None else 0

    @property
    def streaming(self) -> int:
        """How many replicas of the extender receive our reports."""
        return self._replicas.connected if self._replicas is not None else 0

    @property
    def _doing(self) -> str:
        view, moves = (self.watching.view, self.watching.moves_held_back) if self.watching is not None else (None, "")
        streaming, trouble = (self.streaming, self._replicas.trouble) if self._replicas is not None else (None, "")
        return in_words(view, moves, streaming, time.monotonic(), trouble) if self._begun else ""

    def _beat(self) -> None:
        beat(os.environ)
        self._link.send(local.ToHook(health=local.Health(degraded=self.degraded, doing=self._doing)))
        self._pulse.stopping.wait(BEAT_S)

    def _lost(self) -> None:
        self.hook_present = False

    def _received(self, message: local.FromHook) -> None:
        kind = message.WhichOneof("message")
        if kind == "start":
            self.hook_present = True
            self.attachment.received(local.Attachment())
            if message.start.session != self._session:
                self._session = message.start.session
                self.counters.hook_starts.inc()
            with self._lock:
                self.mirror.started(message.start)
            machine = convert.machine_from(message.start.machine)
            self._begin(Config.from_json(message.start.config), machine)
            for part in (self.memory, self.watching):
                if part is not None:
                    part.on(machine)
            if self._namespaces is not None:
                self._operators_set(self._namespaces)
            for asked in (self._devices, self.cpu_use, self.watching):
                if asked is not None:
                    asked.hook_came()
        elif kind == "appeared" and self._devices is not None:
            self._devices.appeared(message.appeared.namespace, message.appeared.name)
        elif kind == "containers":
            for receiver in (self.memory, self.watching, self.census, self._podresources, self.cpu_use):
                if receiver is not None:
                    receiver.received(message.containers)
        elif kind == "counts":
            self.counters.hook.received(message.counts)
        elif kind == "attachment":
            self.attachment.received(message.attachment)
        elif kind == "declined" and self.watching is not None:
            self.watching.declined(message.declined)
        elif kind == "report":
            with self._lock:
                self.mirror.reported(message.report)
            self.counters.received(message.report)
            if self._replicas is not None:
                self._replicas.changed()

    def _begin(self, config: Config, machine: Machine) -> None:
        """Once: the hook's configuration says where the extender and our own port are."""
        if self._begun:
            return
        log.set_up(config.log_level, config.log_format)
        self._read_cgroups(config, machine)
        if config.metrics_listen and self._port is None:
            port = Port(config.metrics_listen, pages.application(self))
            running(self.threads.thread("metrics port", port.serve, last=port.close, backoff=PORT_RETRY))
            self._port = port
        if config.extender and self._replicas is None:
            tls = secured(config, self.counters)
            places = [Endpoint(address, tls, config.extender_token) for address in config.extender.split(",")]
            self._replicas = running(Replicas(places, partial(self._stream, config=config), threads=self.threads))
        if config.podresources_socket != "off" and self._devices is None:
            failures = self.counters.podresources_failures
            self._devices = running(DeviceWatch(config.podresources_socket, self._equipped, failures.inc, self.threads))
        if config.podresources_listen != "off" and self._podresources is None:
            failures = self.counters.podresources_failures
            self._podresources = running(
                PodResourcesServer(
                    config.podresources_listen, config.podresources_socket, self.mirror, failures.inc, self.threads
                )
            )
        if (config.observe != "off" or config.replay) and self.watching is None:
            outlets = Outlets(
                kin=lambda table: self._link.send(local.ToHook(kin=table)),
                plan=lambda plan: self._link.send(local.ToHook(plan=plan)),
                moves=lambda moves: self._link.send(local.ToHook(moves=moves)),
                traffic=self._seen,
                occupancy=lambda: self.mirror.occupancy,
                memory=lambda occupancy, key: self.memory.of(occupancy, key) if self.memory is not None else {},
            )
            self.watching = running(TrafficLoop(config, machine, outlets, self.threads))
        self._begun = True

    def _read_cgroups(self, config: Config, machine: Machine) -> None:
        """Nothing is where there are none to read."""
        try:
            tree = CgroupTree.discover(Path(config.procfs))
        except MachineError as error:
            logger.warning("whether the runtime reports every container can't be checked", why=error)
            return
        self.memory = MemberMemory(tree, machine)
        if self.cpu_use is None:
            self.cpu_use = running(CpuUse(tree, self._used, config.window_s, self.threads))
        if config.mode == "nri" and self.census is None:
            self.census = running(Census(tree, self._untold, self.threads))

    def _stream(self, endpoint: Endpoint, broken: Callable[[], None], *, config: Config) -> ReportStream:
        with self._lock:
            backlog = ReportBacklog(self.mirror)
        devices = partial(pci.devices, Path(config.sysfs))
        return ReportStream(
            endpoint, backlog, self._lock, partial(self._expected, endpoint.address),
            partial(self._broken, endpoint.address, broken), gone=self._gone, namespaces=self._operators_set,
            health=HealthNews(
                self._collector, lambda: self.ready[1], self.threads.standings, devices,
                owners=partial(self._owners, config),
            ),
            version=VERSION, threads=self.threads,
        )  # fmt: skip

    def _owners(self, config: Config) -> Sequence[str]:
        """Who may have the cpusets that were yielded; empty where none was."""
        if not self.mirror.yielded.containers:
            return ()
        try:
            return cpuset_owners(Path(config.procfs), PLUGIN_NAME)
        except OSError as error:
            logger.debug("who else sets cpusets can't be looked for", error=error)
            return ()

    def _collector(self) -> str:
        return self.watching.view.collector if self.watching is not None else "off"

    def _broken(self, replica: str, look_again: Callable[[], None]) -> None:
        self._nominating.lost(replica)
        look_again()

    def _expected(self, replica: str, expect: pb.Expect) -> None:
        self._nominating.heed(replica, expect)
        if self.watching is not None:
            self.watching.counted(expect.replicas[: bounds.REPLICA_COUNTS])
        expect.ClearField("replicas")
        self._link.send(local.ToHook(expect=expect))
        if self._devices is not None:
            self._devices.appeared(expect.namespace, expect.name)

    def _gone(self, gone: pb.Gone) -> None:
        self._link.send(local.ToHook(gone=gone))

    def _operators_set(self, namespaces: pb.Namespaces) -> None:
        """What holds for namespaces from now on; each replica of the extender sends it, with the same contents."""
        self._namespaces = namespaces
        self._link.send(local.ToHook(namespaces=namespaces))
        if self.watching is not None:
            self.watching.tenancy = convert.namespaces_from(namespaces).tenancy

    def _equipped(self, devices: local.Devices) -> None:
        self._link.send(local.ToHook(devices=devices))

    def _untold(self, containers: list[str]) -> None:
        self._link.send(local.ToHook(untold=local.Untold(containers=containers)))

    def _used(self, uses: Uses) -> None:
        self._link.send(local.ToHook(uses=local.Uses(milli=uses)))
        self._seen(pb.Traffic(uses=uses))

    def _seen(self, traffic: pb.Traffic) -> None:
        if self._replicas is not None:
            self._replicas.send(pb.FromEnforcer(traffic=traffic))


def _failed(failure: Failure) -> None:
    logger.failure(failure, PortError, SocketError, BadRecording)


def main(arguments: Sequence[str]) -> int:
    supervisor.die_with_parent()
    share_one_arena()
    log.set_up("info", "text")
    with received((signal.SIGTERM, signal.SIGINT)) as signals:
        Observer(Path(arguments[0])).run(signals)
    return 0
