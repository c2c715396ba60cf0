"""Containers of a node, and what their sockets told."""

from ipaddress import ip_address

from enforcer.observe.attribution.containers import ContainerIndex, LocalContainer
from enforcer.observe.attribution.edges import Edge, Local
from enforcer.observe.bpf.counters import TCP, FlowKey, Volume, peer

NODE = ip_address("192.0.2.1")
SERVICE = ip_address("10.96.0.7")
OUTSIDE = ip_address("198.51.100.9")
OTHER_POD = ip_address("10.244.9.9")

WEB_IP, DB_IP, PAIR_IP = (ip_address(f"10.244.1.{last}") for last in (2, 3, 4))


def container(name, cgroup, *addresses, pod=None, host=False, pids=()):
    return LocalContainer(name, pod or f"pod-{name}", frozenset({cgroup}), addresses, host, frozenset(pids))


WEB = container("web", 11, WEB_IP, pids=[111])
DB = container("db", 12, DB_IP, pids=[112])
APP = container("app", 13, PAIR_IP, pod="pod-pair")
SIDECAR = container("sidecar", 14, PAIR_IP, pod="pod-pair")
AGENT = container("agent", 15, host=True)
EXPORTER = container("exporter", 16, host=True)
RESIDENTS = ContainerIndex.of([WEB, DB, APP, SIDECAR, AGENT, EXPORTER], [NODE])
UNKNOWN_CGROUP = 99


def served(by, to, port, volume, protocol=TCP):
    return {FlowKey(next(iter(by.cgroup_ids)), peer(to), port, True, protocol): volume}


def asked(by, of, port, volume, protocol=TCP):
    return {FlowKey(next(iter(by.cgroup_ids)), peer(of), port, False, protocol): volume}


def both_ways(first, other, volume, port, kind="tcp", *, by_server=True):
    """Edges of an exchange in which `one` counted the volume."""
    return {
        Edge(kind, first, other, volume.tx_bytes, volume.tx_messages, port, by_server),
        Edge(kind, other, first, volume.rx_bytes, volume.rx_messages, port, by_server),
    }


def end(owner):
    return Local(owner.pod_uid, owner.container_id)


ANSWERS = Volume(1009, 23, 101, 29)
REQUESTS = Volume(101, 29, 1009, 23)
