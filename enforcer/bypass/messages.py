"""A pod and a container as CRI describes them, in NRI's messages: pure functions.

CRI itself has names, labels, states and limits. The rest (pid, cgroup, namespaces, devices) is in the `info` of a
verbose answer, JSON of each runtime's own making: containerd and CRI-O both put `pid` and the OCI `runtimeSpec` into
it, containerd also the `config` that the kubelet sent. What is not there, or not as expected, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from numakin.wire import cri_pb2 as cri
from numakin.wire import nri_pb2 as nri

STATES = {
    cri.CONTAINER_CREATED: nri.CONTAINER_CREATED,
    cri.CONTAINER_RUNNING: nri.CONTAINER_RUNNING,
    cri.CONTAINER_EXITED: nri.CONTAINER_STOPPED,
    cri.CONTAINER_UNKNOWN: nri.CONTAINER_UNKNOWN,
}

PIDS = 1 << 22
"""The kernel's pids are below it (PID_MAX_LIMIT)."""


def sandbox_of(answer: cri.PodSandboxStatusResponse) -> nri.PodSandbox:
    """From a verbose PodSandboxStatus."""
    status, info = answer.status, _info(answer.info)
    sandbox = nri.PodSandbox(
        id=status.id,
        name=status.metadata.name,
        uid=status.metadata.uid,
        namespace=status.metadata.namespace,
        labels=status.labels,
        annotations=status.annotations,
        runtime_handler=status.runtime_handler,
        pid=_number(info, "pid", PIDS),
        ips=[status.network.ip, *(address.ip for address in status.network.additional_ips)]
        if status.network.ip
        else [],
    )
    if status.linux.namespaces.options.network != cri.NODE:
        sandbox.linux.namespaces.add(type="network")
    whole = _table(info, "config", "linux", "resources")
    if whole:
        sandbox.linux.pod_resources.CopyFrom(_resources(_of_config(whole)))
    return sandbox


def container_of(listed: cri.Container, answer: cri.ContainerStatusResponse) -> nri.Container:
    """From a list's row, which knows the sandbox, and a verbose ContainerStatus; the path of the cgroup is empty where
    the runtime does not report it.
    """
    status, info = answer.status, _info(answer.info)
    spec = _table(info, "runtimeSpec", "linux")
    limits = _of_spec(_table(spec, "resources"))
    limits.MergeFrom(status.resources.linux)
    container = nri.Container(
        id=listed.id,
        pod_sandbox_id=listed.pod_sandbox_id,
        name=listed.metadata.name,
        state=STATES.get(status.state, nri.CONTAINER_UNKNOWN),
        labels=listed.labels,
        annotations=listed.annotations,
        pid=_number(info, "pid", PIDS),
        created_at=status.created_at,
        started_at=status.started_at,
    )
    container.linux.cgroups_path = _text(spec, "cgroupsPath")
    container.linux.resources.CopyFrom(_resources(limits))
    for row in _rows(spec, "namespaces"):
        container.linux.namespaces.add(type=_text(row, "type"), path=_text(row, "path"))
    for row in _rows(spec, "devices"):
        major, minor = _number(row, "major"), _number(row, "minor")
        container.linux.devices.add(path=_text(row, "path"), type=_text(row, "type"), major=major, minor=minor)
    return container


def _resources(limits: cri.LinuxContainerResources) -> nri.LinuxResources:
    """What is 0 is not set; nor is a limit below it, which means none."""
    resources = nri.LinuxResources()
    if limits.cpu_shares > 0:
        resources.cpu.shares.value = limits.cpu_shares
    if limits.cpu_quota > 0:
        resources.cpu.quota.value = limits.cpu_quota
    if limits.cpu_period > 0:
        resources.cpu.period.value = limits.cpu_period
    resources.cpu.cpus, resources.cpu.mems = limits.cpuset_cpus, limits.cpuset_mems
    if limits.memory_limit_in_bytes > 0:
        resources.memory.limit.value = limits.memory_limit_in_bytes
    return resources


def _of_config(table: dict[str, Any]) -> cri.LinuxContainerResources:
    try:
        return json_format.ParseDict(table, cri.LinuxContainerResources(), ignore_unknown_fields=True)
    except json_format.ParseError:
        return cri.LinuxContainerResources()


def _of_spec(table: dict[str, Any]) -> cri.LinuxContainerResources:
    """The OCI runtime spec's words for the same."""
    cpu, memory = _table(table, "cpu"), _table(table, "memory")
    return cri.LinuxContainerResources(
        cpu_shares=_number(cpu, "shares"),
        cpu_quota=_number(cpu, "quota"),
        cpu_period=_number(cpu, "period"),
        cpuset_cpus=_text(cpu, "cpus"),
        cpuset_mems=_text(cpu, "mems"),
        memory_limit_in_bytes=_number(memory, "limit"),
    )


def _info(info: Mapping[str, str]) -> dict[str, Any]:
    try:
        parsed = json.loads(info.get("info", "{}"))
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _table(tree: dict[str, Any], *path: str) -> dict[str, Any]:
    for key in path:
        below = tree.get(key)
        tree = below if isinstance(below, dict) else {}
    return tree


def _rows(tree: dict[str, Any], key: str) -> list[dict[str, Any]]:
    rows = tree.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _number(tree: dict[str, Any], key: str, below: int = 1 << 63) -> int:
    """0 for what is none of 0 to below."""
    number = tree.get(key)
    return number if type(number) is int and 0 <= number < below else 0


def _text(tree: dict[str, Any], key: str) -> str:
    """Empty for what is none; what UTF-8 can't say (a lone surrogate, which JSON can) is replaced."""
    text = tree.get(key)
    return text.encode(errors="replace").decode() if isinstance(text, str) else ""
