"""Pods and their flows, as enforcers tell of them."""

from __future__ import annotations

from extender.state.pods import OwnerRow, PodRow
from numakin.placement.traffic.graph import Flow


def pod(uid: str, workload: str = "", *, node: str = "", ip: str = "", group: str = "auto", **more) -> PodRow:
    return PodRow(
        uid=uid,
        namespace="shop",
        name=uid,
        node=node,
        annotations={"group.numakin.io": group} if group else {},
        owner=OwnerRow("Deployment", workload or uid),
        phase="Running",
        ip=ip,
        **more,
    )


def flow(source: str, target: str, size: int = 1000, messages: int = 10, kind: str = "tcp", *, server=False) -> Flow:
    return Flow(source, target, kind, size, messages, server)
