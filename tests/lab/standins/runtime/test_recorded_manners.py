"""What the embedded runtime does CRI-O's way, and containerd's, is what was recorded of them."""

from __future__ import annotations

import pytest

from lab.standins.runtime.manners import Manner, manner_of
from lab.standins.runtime.records import pod_resources_of
from lab.standins.runtime.versions import VERSIONS
from numakin.wire import nri_pb2 as nri
from tests.enforcer.nri.lives import RUNTIMES, Told, asked, life, of

pytestmark = pytest.mark.parametrize("name", RUNTIMES)


def manner(name: str) -> Manner:
    return manner_of(name, VERSIONS["0.12.0"])


def kinds(told: Told) -> list[str]:
    return [namespace.type for namespace in told.pod.linux.namespaces]


def test_it_names_itself(name: str) -> None:
    assert asked(name, "Configure").runtime_name == name


def test_a_pod_in_the_hosts_network_lists_these_namespaces(name: str) -> None:
    listed = [*manner(name).namespaces, *(["network"] if manner(name).lists_host_network else [])]
    assert sorted(kinds(of(life(name), "RunPodSandbox", "cart"))) == sorted(listed)


def test_a_containers_cgroup(name: str) -> None:
    container = of(life(name), "CreateContainer", "cart", "main").container
    assert container.linux.cgroups_path.rpartition("/")[2] == f"{manner(name).cgroup_prefix}{container.id}"


def test_a_containers_annotations(name: str) -> None:
    annotations = of(life(name), "CreateContainer", "cart", "main").container.annotations
    assert ("group.numakin.io" in annotations) == manner(name).annotates_containers


def test_a_containers_pid_and_state_on_its_way(name: str) -> None:
    told = life(name)
    assert bool(of(told, "PostCreateContainer", "cart", "main").container.pid) == manner(name).pid_from_creation
    assert of(told, "StartContainer", "cart", "main").container.pid
    state = of(told, "PostStartContainer", "cart", "main").container.state
    assert (state == nri.CONTAINER_CREATED) == manner(name).created_at_post_start


def test_a_container_that_is_killed_is_told_at_once(name: str) -> None:
    killed = of(life(name), "StopContainer", "cart", "main").container
    assert (killed.state == nri.CONTAINER_STOPPED) == manner(name).stopped_when_it_ends


def test_a_program_that_is_not_there_fails_the_creation_on_cri_o_and_nothing_is_undone(name: str) -> None:
    methods = [told.method for told in life(name) if told.container is not None and told.container.name == "broken"]
    if name == "cri-o":
        assert methods == ["CreateContainer"]
    else:
        assert methods == ["CreateContainer", "PostCreateContainer", "StopContainer", "RemoveContainer"]


def test_a_pods_resources(name: str) -> None:
    shown = of(life(name), "RunPodSandbox", "cart").pod.linux.pod_resources
    assert shown == pod_resources_of(0.5, 0, 64 << 20)


def test_a_resize_shows_what_is_asked_for_and_keeps_the_cpuset(name: str) -> None:
    after = of(life(name), "PostUpdateContainer", "cart", "main").container.linux.resources
    assert (after.cpu.shares.value, after.cpu.quota.value, after.memory.limit.value) == (1024, 200_000, 96 << 20)
    assert (after.cpu.cpus, after.cpu.mems) == ("1", "0")


def test_the_end_of_a_sandbox_that_outlived_the_runtime(name: str) -> None:
    told = [each.pod.name for each in life(name, "restarted") if each.method == "StopPodSandbox"]
    assert ("cart" in told) == manner(name).tells_end_of_recovered
