"""A real enforcer beside a runtime that sends what a real kubelet and containerd were seen to send of pods with
resources of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.standins.patience import PATIENCE_S
from lab.standins.runtime.runtime import Runtime
from tests.enforcer.running import GROUP, Enforcer, cpus

OWN = GROUP | {"cpus.numakin.io": "exclusive"}
MIB = 1 << 20
BOTH: dict[str, int] = {"cpu_request": 2, "cpu_limit": 2, "memory_limit": 64 * MIB}
"""Of the sandbox, and again of each container that asks for nothing by itself."""


@pytest.fixture
def runtime(enforcer: Enforcer) -> Iterator[Runtime]:
    """One whose NRI tells of resized sandboxes."""
    with Runtime(enforcer.socket, nri_version="0.10.0") as made:
        yield made


@pytest.fixture
def running(enforcer: Enforcer, runtime: Runtime) -> Enforcer:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    return enforcer


def reasons(enforcer: Enforcer, name: str) -> str:
    return "; ".join(*(row["reasons"] for row in enforcer.status()["containers"] if row["container"] == name))


def test_two_containers_that_ask_for_nothing_share_their_pod_s_exclusive_cpus(running: Enforcer, runtime: Runtime):
    pod = runtime.run_pod("p", annotations=OWN, **BOTH)
    made = [runtime.run_container(pod, name, **BOTH) for name in ("first", "second")]
    first, second = (cpus(runtime, container) for container in made)
    assert (first, len(first)) == (second, 2)
    assert "are shared with its pod's containers alone" in reasons(running, "second")


def test_one_with_whole_cpus_of_its_own_takes_them_from_the_others(running: Enforcer, runtime: Runtime):
    """The runtime carries out both: what the new one gets, and what leaves the other."""
    four = {**BOTH, "cpu_request": 4, "cpu_limit": 4}
    pod = runtime.run_pod("p", annotations=OWN, **four)
    app = runtime.run_container(pod, "app", **four)
    assert len(cpus(runtime, app)) == 4
    db = runtime.run_container(pod, "db", **BOTH | {"memory_limit": 32 * MIB})
    assert (len(cpus(runtime, app)), len(cpus(runtime, db))) == (2, 2)
    assert cpus(runtime, app).isdisjoint(cpus(runtime, db))
    log = runtime.run_container(pod, "log", **four)
    assert cpus(runtime, log) == cpus(runtime, app)


def test_a_resize_of_the_pod_s_own_resources_takes_the_room_that_it_asks_for(running: Enforcer, runtime: Runtime):
    """Of 80 CPUs of its NUMA node 70 are the resized pod's: a member of 20 has to go to the other one."""
    pod = runtime.run_pod("p", annotations=GROUP, **BOTH)
    first, _ = (runtime.run_container(pod, name, **BOTH) for name in ("first", "second"))
    runtime.resize_pod(pod, 70, 70, 64 * MIB)
    large = runtime.run_container(runtime.run_pod("large", annotations=GROUP, cpu_request=20), "app", cpu_request=20)
    assert cpus(runtime, large).isdisjoint(cpus(runtime, first))
    assert running.status()["counts"]["resized"] == 1


def test_requests_alone_are_room_too(running: Enforcer, runtime: Runtime):
    """Its containers show nothing: no quota, and the least shares."""
    pod = runtime.run_pod("p", annotations=GROUP, cpu_request=70)
    first, _ = (runtime.run_container(pod, name) for name in ("first", "second"))
    large = runtime.run_container(runtime.run_pod("large", annotations=GROUP, cpu_request=20), "app", cpu_request=20)
    assert cpus(runtime, large).isdisjoint(cpus(runtime, first))
