"""The whole path on two real nodes of one cluster, this machine and an emulated one with four NUMA nodes: Deployment,
scheduler, extender, kubelet, containerd, NRI, cgroup. The control plane runs on this machine.

One boot runs tests/e2e/guest/real_node.py; each test here reads what became of the pods by its end.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.cluster.binaries import Binaries
from lab.cluster.cluster import Cluster
from lab.cluster.credentials import EMULATOR_HOST
from tests.cluster.workloads import Deployment, Namespace, deployment, nodes_by_group
from tests.e2e.conftest import for_real_node, have_real_node
from tests.e2e.guest import real_node, shares
from tests.e2e.guest.world import WAITS
from tests.e2e.lab import vm
from tests.e2e.lab.kubelet import configuration
from tests.e2e.lab.node import Node, running
from tests.e2e.lab.pods import pod_spec, program
from tests.e2e.lab.runtimes import TRIXIE
from tests.e2e.lab.split_machine import SplitMachine

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.runtime, pytest.mark.timeout(vm.TEST_S)]

HERE, EMULATED = "here", "emulated"
"""The nodes."""

NUMA_NODES = {"0": 0, "1": 1, "2": 2, "3": 3}
"""Of the emulated node, by their CPUs."""

LAST = "last"

SYSTEMD = {"cgroupDriver": "systemd"}
"""On the emulated node, as on most nodes; this machine has cgroupfs."""

GROUPS = {"shop": EMULATED, "bank": EMULATED, "cart": HERE}
"""Where each has its first members."""

FIRSTS = {"shop": 2, "bank": 1, "cart": 2}
"""How many; one more comes later."""

CALLS = {"web-1": "cart-1", "web-2": "cart-2"}
"""Whom the environment of each names, of those that say no more than `auto`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """pods: as the API server has them. emulated: by pod, what the emulated node's kernel says of it. here: by pod, its
    CPUs on this machine. after: by what was asked for, where the emulated node's pods were then.
    """

    pods: list[dict[str, Any]]
    emulated: dict[str, dict[str, Any]]
    here: dict[str, str]
    after: dict[str, dict[str, str]]

    def of(self, group: str) -> list[str]:
        """Its pods."""
        return [
            pod["metadata"]["name"]
            for pod in self.pods
            if pod["metadata"].get("annotations", {}).get("group.numakin.io") == group
        ]

    def cpus(self, pod: str) -> str:
        row = self.emulated.get(pod)
        return row["allowed"]["cpus"] if row else self.here[pod]

    def home(self, workload: str) -> tuple[str, str]:
        """The node of its only pod, and its CPUs there: both nodes number them from 0."""
        (pod,) = (pod for pod in self.pods if pod["metadata"]["labels"]["app"] == workload)
        return pod["spec"]["nodeName"], self.cpus(pod["metadata"]["name"])


@pytest.fixture(scope="module")
def cluster(numavm: Callable[..., vm.Result], kubernetes: Binaries) -> Iterator[Cluster]:
    have_real_node(kubernetes, TRIXIE)
    yield from for_real_node(kubernetes, HERE, EMULATED)


@pytest.fixture(scope="module")
def node(
    cluster: Cluster, kubernetes: Binaries, machine: SplitMachine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    with running(cluster, kubernetes, TRIXIE, HERE, machine.sysfs, tmp_path_factory.mktemp("enforcer")) as made:
        yield made


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Namespace:
    made = Namespace(cluster, "shops")
    made.make()
    return made


@pytest.fixture(scope="module")
def outcome(
    cluster: Cluster,
    kubernetes: Binaries,
    node: Node,
    namespace: Namespace,
    numavm: Callable[..., vm.Result],
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcome:
    shared = what_the_kubelet_needs(cluster, kubernetes, tmp_path_factory.mktemp("node"))
    extender = f"{EMULATOR_HOST}:{cluster.extenders[0].grpc.rpartition(':')[2]}"
    command = ["python3", "-m", real_node.__name__, EMULATED, extender, LAST]
    network = ("-netdev", "user,id=outside", "-device", "virtio-net-pci,netdev=outside")
    with ThreadPoolExecutor(1) as pool:
        boot = pool.submit(
            numavm,
            "4x1",
            command,
            systemd=True,
            options=("--qemu", *network, *shares.options(real_node.SHARED, shared)),
        )
        deploy_in_turn(namespace, boot)
        result = boot.result()
    assert result.status == 0, f"{result.failure()}\n{what_became_of(namespace)}"
    print(result.output)
    pods = namespace.pods()
    print("\n".join(told(namespace, pod["metadata"]["name"]) for pod in pods if pod["metadata"].get("annotations")))
    here = {
        pod["metadata"]["name"]: node.cpus(pod, pod["spec"]["containers"][0]["name"])
        for pod in pods
        if pod["spec"]["nodeName"] == HERE
    }
    rows = result.records()
    emulated = {row["pod"]: row for row in rows if "pod" in row}
    return Outcome(pods, emulated, here, {row["after"]: row["where"] for row in rows if "after" in row})


def what_the_kubelet_needs(cluster: Cluster, kubernetes: Binaries, folder: Path) -> Path:
    release = cluster.plane.release
    shutil.copy(kubernetes["kubelet"], folder / real_node.KUBELET)
    cluster.kubelet_credentials(EMULATED, folder / real_node.KUBECONFIG, host=EMULATOR_HOST)
    (folder / real_node.CONFIG).write_text(json.dumps(release.kubelet_config(configuration() | SYSTEMD)))
    (folder / "options.json").write_text(json.dumps(release.kubelet_options))
    return folder


def deploy_in_turn(namespace: Namespace, boot: Future[vm.Result]) -> None:
    """Each group's first members on the node that they name; once all run, others that name none."""
    namespace.serve(*CALLS.values())
    firsts = [runnable(group, FIRSTS[group], group=group, node=node) for group, node in GROUPS.items()]
    callers = [runnable(name, 1, group="auto", node=EMULATED, calls=called) for name, called in CALLS.items()]
    followers = [runnable(f"{group}-late", 1, group=group) for group in GROUPS]
    called = [runnable(name, 1, group="auto") for name in CALLS.values()]
    expected = 0
    for wave in (firsts + callers, followers + called, [runnable(LAST, 1, node=EMULATED)]):
        namespace.deploy(*wave)
        expected += sum(each["spec"]["replicas"] for each in wave)
        until_running(namespace, expected, boot)


def until_running(namespace: Namespace, count: int, boot: Future[vm.Result]) -> None:
    """Or until the boot has ended, which says why."""

    def done() -> bool:
        return boot.done() or namespace.running() == count

    namespace.cluster.until(done, f"{count} pods to run", vm.LONGEST_S)


def told(namespace: Namespace, pod: str) -> str:
    """By the extender, of a pod that opted in: why it is where it is."""
    story = namespace.cluster.extenders[0].get(f"/api/v1/explain?namespace={namespace.name}&pod={pod}")
    return json.dumps({"pod": pod, **{key: story[key] for key in ("summary", "scored", "unscored")}})


def what_became_of(namespace: Namespace) -> str:
    """The nodes, the pods and their events, as the API server has them."""
    kinds = "nodes", "pods", "events"
    return "\n".join(namespace.cluster.kubectl("-n", namespace.name, "get", kind, "-o", "wide") for kind in kinds)


def runnable(name: str, replicas: int, *, group: str = "", node: str = "", calls: str = "") -> Deployment:
    """Pods that touch their memory and wait."""
    annotations = {"group.numakin.io": group} if group else {}
    made = deployment(name, replicas, annotations=annotations)
    resources = {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
    env = [{"name": "PEER", "value": f"{calls}:7070"}] if calls else []
    container = program(name, *WAITS[1:]) | {"resources": resources, "env": env}
    selector = {"kubernetes.io/hostname": node} if node else {}
    made["spec"]["template"]["spec"] = pod_spec(containers=[container], nodeSelector=selector)
    return made


def test_who_comes_later_is_scheduled_to_its_group_s_node(outcome: Outcome) -> None:
    assert nodes_by_group(outcome.pods) == {group: {node} for group, node in (GROUPS | {"auto": EMULATED}).items()}
    assert {group: len(outcome.of(group)) for group in GROUPS} == {group: count + 1 for group, count in FIRSTS.items()}


def test_the_members_of_a_group_run_on_the_cpus_of_one_numa_node(outcome: Outcome, machine: SplitMachine) -> None:
    homes = defaultdict(set)
    for group in GROUPS:
        homes[group] |= {outcome.cpus(pod) for pod in outcome.of(group)}
    assert all(len(cpus) == 1 for cpus in homes.values()), homes
    assert homes["shop"] | homes["bank"] <= set(NUMA_NODES)
    assert homes["shop"] != homes["bank"]
    assert homes["cart"] <= set(machine.halves)


def test_their_memory_is_on_the_numa_node_of_their_cpus(outcome: Outcome) -> None:
    for pod in (*outcome.of("shop"), *outcome.of("bank")):
        row = outcome.emulated[pod]
        assert row["allowed"] == row["cgroup"]
        home = str(NUMA_NODES[row["allowed"]["cpus"]])
        assert row["allowed"]["mems"] == home
        assert row["memory"][home] > 0.95 * sum(row["memory"].values())


def test_a_pod_is_beside_the_one_that_names_its_service_before_any_packet(outcome: Outcome) -> None:
    assert {name: outcome.home(name) for name in CALLS} == {name: outcome.home(CALLS[name]) for name in CALLS}
    assert outcome.home("web-1") != outcome.home("web-2")


def test_they_run_where_the_extender_says(namespace: Namespace, outcome: Outcome) -> None:
    for group in GROUPS:
        for pod in outcome.of(group):
            told = namespace.reported_cpus(pod)  # of the emulated node's, also what an operator asked for later
            assert outcome.cpus(pod) in told
            assert pod in outcome.emulated or len(told) == 1


def test_a_pod_that_has_not_opted_in_may_run_everywhere(outcome: Outcome) -> None:
    (row,) = (row for pod, row in outcome.emulated.items() if pod.startswith(LAST))
    assert row["allowed"] == {"cpus": "0-3", "mems": "0-3"}


def test_systemd_has_their_cgroups_and_each_figure_of_them_is_read(outcome: Outcome) -> None:
    for name, row in outcome.emulated.items():
        unit, driver, _ = row["path"].split(":")
        assert (unit.endswith(".slice"), driver) == (True, "cri-containerd"), row["path"]
        read = row["read"]
        assert read["pod"], name
        assert read["cpus"] == row["cgroup"]["cpus"]
        assert read["cpu_seconds"] > 0
        assert sum(read["memory"].values()) >= sum(row["memory"].values())


@pytest.mark.parametrize("mode", ["nri", "bypass"])
def test_a_release_opens_them_and_a_resume_pins_them_again(outcome: Outcome, mode: str) -> None:
    members = [pod for pod in outcome.emulated if not pod.startswith(LAST)]
    assert {outcome.after[f"{mode}: release"][pod] for pod in members} == {"0-3"}
    assert {outcome.after[f"{mode}: resume"][pod] for pod in members} <= set(NUMA_NODES)


@pytest.mark.parametrize("mode", ["nri", "bypass"])
def test_systemd_leaves_cpusets_alone_when_it_is_reloaded_or_sets_properties(outcome: Outcome, mode: str) -> None:
    assert outcome.after[f"{mode}: systemctl"] == outcome.after[f"{mode}: resume"]
