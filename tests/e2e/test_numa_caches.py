"""Pods that keep to one last-level cache of their NUMA node, on a machine (emulated) that has two in each.

One boot runs tests/e2e/guest/caches.py; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from numakin.placement.model.cpuset import CpuSet
from tests.e2e.guest import cache_moves, caches
from tests.e2e.lab import vm

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.timeout(vm.TEST_S)]

NUMA_NODES = {"0": "0-7", "1": "8-15"}
CACHES = {"0": {"0-3", "4-7"}, "1": {"8-11", "12-15"}}
"""By NUMA node."""


class Observed:
    """What the boot printed. before, beside, after: each pod's CPUs while a pod had none of theirs for itself, while it
    had, and once it was gone. came, met: those of pods that talk, as they came and after moves; begun, hot, cool: those
    of one that computes, at first, once its cache was hot, and once it had cooled. computed: CPUs of its cache that the
    kernel counted as used.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.caches: list[str] = records[0]["caches"]
        self.pods: dict[str, dict[str, Any]] = {record["pod"]: record for record in records if "pod" in record}
        found = {key: value for record in records[1:] if "pod" not in record for key, value in record.items()}
        self.changes = {when: found[when] for when in ("before", "beside", "after")}
        self.before, self.beside, self.after = (_cpus(change["allowed"]) for change in self.changes.values())
        self.came, self.met = _cpus(found["came"]), _cpus(found["met"])
        self.moves: list[str] = found["moves"]
        self.computed: float = found["computed"]
        self.begun, self.hot, self.cool = (
            _cpus(found[when])[cache_moves.WORKER.name] for when in ("begun", "hot", "cool")
        )

    def of(self, *pods: str) -> set[str]:
        """Their CPUs."""
        return {self.before[pod] for pod in pods}

    def numa_node(self, pod: str) -> str:
        return str(self.pods[pod]["allowed"]["mems"])


def _cpus(allowed: Mapping[str, Any]) -> dict[str, str]:
    return {pod: place["cpus"] for pod, place in allowed.items()}


@pytest.fixture(scope="module")
def observed(numavm: Callable[..., vm.Result]) -> Observed:
    if vm.ARCHITECTURE != "amd64":
        pytest.skip("QEMU describes caches of amd64 alone")
    result = numavm("caches", ["python3", "-m", caches.__name__])
    assert result.status == 0, result.failure()
    return Observed(result.records())


def test_the_machine_has_two_caches_in_each_numa_node(observed: Observed) -> None:
    assert set(observed.caches) == CACHES["0"] | CACHES["1"]


def test_a_group_shares_one_cache_of_a_numa_node_and_another_group_another(observed: Observed) -> None:
    shop, bank = observed.of("cart", "checkout", "payment"), observed.of("ledger", "teller")
    assert len(shop) == len(bank) == 1
    assert shop != bank
    assert shop <= CACHES[observed.numa_node("cart")]
    assert bank <= CACHES[observed.numa_node("ledger")]


def test_who_finds_its_group_s_cache_full_is_in_another_of_the_same_numa_node(observed: Observed) -> None:
    beside = CACHES[observed.numa_node("cart")] - observed.of("cart")
    assert observed.of("search") == beside
    assert observed.numa_node("search") == observed.numa_node("cart")


def test_a_pod_that_no_cache_holds_has_its_numa_node(observed: Observed) -> None:
    assert observed.before["index"] == NUMA_NODES[observed.numa_node("index")]


def test_a_pod_that_asks_for_no_cache_has_its_numa_node(observed: Observed) -> None:
    assert observed.before["batch"] == NUMA_NODES[observed.numa_node("batch")]


def test_exclusive_cpus_are_within_one_cache(observed: Observed) -> None:
    own = CpuSet.parse(observed.beside["alone"])
    assert len(own) == 3
    assert any(own <= CpuSet.parse(cache) for cache in observed.caches)


def test_a_cache_that_became_too_small_lets_its_members_out_until_it_holds_them_again(observed: Observed) -> None:
    own = CpuSet.parse(observed.beside["alone"])
    for pod, before in observed.before.items():
        home = CpuSet.parse(NUMA_NODES[observed.numa_node(pod)])
        cache = CpuSet.parse(before)
        kept = not own & cache
        assert CpuSet.parse(observed.beside[pod]) == (cache if kept else home - own), pod
        assert observed.after[pod] == before


@pytest.mark.parametrize("pod", [request.name for request in (*caches.PODS, caches.ALONE)])
def test_the_extender_s_prediction_is_what_happened(observed: Observed, pod: str) -> None:
    seen = observed.pods[pod]
    assert [container["cpus"] for container in seen["predicted"]["containers"]] == [seen["allowed"]["cpus"]]
    assert seen["happened"][-1]["cpus"] == seen["allowed"]["cpus"]
    assert seen["happened"][-1]["nomination"] == "kept"


def test_the_cgroups_say_what_is_in_force(observed: Observed) -> None:
    for when, now in observed.changes.items():
        assert now["cgroup"] == now["allowed"], when


def test_servers_that_came_first_share_a_cache_and_leave_their_clients_the_one_beside_it(observed: Observed) -> None:
    servers, clients = ({observed.came[pod] for pod in pods} for pods in zip(*cache_moves.PAIRS.items(), strict=True))
    assert servers | clients in CACHES.values()
    assert len(servers) == len(clients) == 1


def test_those_that_talk_meet_in_one_cache_by_two_that_change_places(observed: Observed) -> None:
    caches_of_pairs = [{observed.met[server], observed.met[client]} for server, client in cache_moves.PAIRS.items()]
    assert [len(cpus) for cpus in caches_of_pairs] == [1, 1]
    assert set().union(*caches_of_pairs) == set(observed.came.values())
    assert len([pod for pod, cpus in observed.met.items() if cpus != observed.came[pod]]) == 2


def test_what_each_move_within_the_numa_node_brings_is_told(observed: Observed) -> None:
    assert len(observed.moves) == 2, observed.moves
    assert all("cache" in move for move in observed.moves), observed.moves


def test_the_kernel_counts_the_cpus_of_a_cache_that_are_used(observed: Observed) -> None:
    assert 0.75 * cache_moves.CACHE_CPUS <= observed.computed <= cache_moves.CACHE_CPUS


def test_who_makes_its_cache_hot_is_let_out_of_it_and_is_back_once_it_has_cooled(observed: Observed) -> None:
    assert observed.begun in observed.caches
    assert observed.hot in NUMA_NODES.values()
    assert CpuSet.parse(observed.begun) <= CpuSet.parse(observed.hot)
    assert observed.cool == observed.begun
