"""What a real enforcer knows of its members after its hook was killed, between a runtime and an API server: all that the
API server tells of them; and a static pod by the name that its node has for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.records import Pod
from tests.extender.site import NodeSite

MIB = 1 << 20
GROUP = {"group.numakin.io": "shop"}
LIMITED = {"requests": {"cpu": "500m", "memory": "8Mi"}, "limits": {"memory": "8Mi"}}
OPEN = {"requests": {"cpu": "1", "memory": "256Mi"}}
CONTAINERS = [
    {"name": "limited", "image": "x", "resources": LIMITED},
    {"name": "open", "image": "x", "resources": OPEN},
]
SUMS = {"cpu_request": 1.5, "memory_limit": 8 * MIB}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n"}


class Site(NodeSite):
    def run(self, pod: Pod) -> None:
        self.runtime.run_container(pod, "limited", cpu_request=0.5, memory_limit=8 * MIB)
        self.runtime.run_container(pod, "open", cpu_request=1)

    def counted(self) -> tuple[int, int]:
        """Pods of the node, those that are assumed too, and MiB that they ask for there, as the extender has it."""
        (node,) = self.nodes()
        return node["pods"] + len(node["assumed"]), sum(
            numa_node["requested_memory"] for numa_node in node["numa_nodes"]
        ) // MIB


@pytest.fixture
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        made = Site(Path(folder))
        yield made
        made.close()


def test_true_requests_come_back_after_the_hook_was_killed(site: Site) -> None:
    uid = site.server.create_pod("web", annotations=GROUP, containers=CONTAINERS)["metadata"]["uid"]
    site.server.bind("web", "n1")
    until(lambda: site.counted() == (1, 264), "the pod is expected")
    site.run(site.runtime.run_pod("web", uid=uid, annotations=GROUP, **SUMS))
    site.server.set_phase("web", "Running")
    until(lambda: site.counted() == (1, 264), "what it asks for is counted")
    site.enforcer.kill_hook()
    site.runtime.run_container(site.runtime.run_pod("plain"), "main")
    until(lambda: site.counted() == (2, 264), "a later report's requests are true")


def test_a_static_pod_is_counted_once_and_by_what_its_mirror_says(site: Site) -> None:
    pod = site.runtime.run_static_pod("dns", "n1", GROUP, **SUMS)
    site.run(pod)
    mirrored = {**pod.annotations, "kubernetes.io/config.mirror": pod.uid}
    mirror = site.server.create_pod(pod.name, annotations=mirrored, containers=CONTAINERS, owner=NODE, nodeName="n1")
    assert mirror["metadata"]["uid"] != pod.uid
    until(lambda: site.counted() == (1, 264), "its requests are known")


def test_a_pod_that_was_deleted_while_its_runtime_was_away_leaves_no_room_behind(site: Site) -> None:
    """Its containers end, but of its sandbox no word comes; no cgroup is seen here either."""
    uid = site.server.create_pod("web", annotations=GROUP, containers=CONTAINERS)["metadata"]["uid"]
    site.server.bind("web", "n1")
    pod = site.runtime.run_pod("web", uid=uid, annotations=GROUP, **SUMS)
    site.run(pod)
    site.server.set_phase("web", "Running")
    until(lambda: site.counted() == (1, 264), "what it asks for is counted")
    site.runtime.stop()
    until(site.enforcer.parted, "the runtime is missed")
    site.runtime.start()
    site.runtime.wait_for_plugin(PATIENCE_S)
    site.server.delete("v1", "pods", "web", namespace="default", grace_s=0)
    site.runtime.remove_pod(pod)
    until(lambda: site.counted() == (0, 0), "its room is free")
