"""Replicas of three workloads that talk."""

from __future__ import annotations

from dataclasses import replace

from extender.state.pods import OwnerRow
from tests.extender.machines import pod

CART, REDIS, WEB = (f"default/Deployment/{name}" for name in ("cart", "redis", "web"))


def replica(uid: str, workload: str, *, group: str = "auto", node: str = ""):
    return replace(pod(uid, group=group, node=node), owner=OwnerRow("Deployment", workload), phase="Running")
