"""Process ids that the runtime still tells of a container whose start failed, and that are another pod's by now."""

from __future__ import annotations

from typing import Any

import pytest

from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observer.windows import LiveWindows
from numakin.placement.traffic.graph import Flow
from numakin.wire import local_pb2 as local

REQUESTS, REQUEST, REPLY = 23, 101, 1009


@pytest.mark.bpf
@pytest.mark.parametrize("ips", [["10.87.0.9"], []], ids=["its address is told", "or not"])
def test_traffic_stays_with_the_pod_that_has_the_process(lab: Any, pods: Any, ips: list[str]) -> None:
    """And how it is counted stays, too: two pods in one cgroup would take another collector, for good."""
    server = lab.serve("tcp", "10.87.0.2", 5003, REQUEST, REPLY, **pods["server"])
    failed = local.LocalContainer(
        id="failed", pod="pod-failed", pid=server.pid, ips=ips, cgroups_path="/kubepods/pod-failed/failed"
    )
    source = LiveWindows(DutyCycle(1), lambda: 0.0)
    collector = source.collector
    with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **pods["client"]) as asking:
        source.received(
            [
                local.LocalContainer(id="client", pod="pod-client", pid=asking.pid, ips=["10.87.0.1"]),
                local.LocalContainer(
                    id="server",
                    pod="pod-server",
                    pid=server.pid,
                    ips=["10.87.0.2"],
                    cgroups_path=f"/{pods['server']['cgroup'].path.name}",
                ),
                failed,
            ]
        )
        source.step(0.0)
        with lab.asking("tcp", "10.87.0.2", 5003, REQUEST, REPLY, REQUESTS, **pods["client"]):
            window = source.window(10.0)
    source.close()
    assert source.collector == collector
    assert set(window.flows) == {
        Flow("pod-client", "pod-server", "tcp", REQUESTS * REQUEST, REQUESTS, True),
        Flow("pod-server", "pod-client", "tcp", REQUESTS * REPLY, REQUESTS, True),
    }
