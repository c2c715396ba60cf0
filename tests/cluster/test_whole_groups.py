"""Groups stay whole on a real kube-scheduler: the main job."""

from __future__ import annotations

import pytest

from tests.cluster.workloads import Namespace, member, split

PAIRS = [member(f"pair-{number}", 2) for number in range(40)]
TENS = [member(f"ten-{number}", 10) for number in range(30)]


@pytest.mark.parametrize(("groups", "pods"), [(PAIRS, 80), (TENS, 300)], ids=["40 pairs", "30 groups of ten"])
def test_groups_that_come_one_after_the_other_are_on_one_node_each(namespace: Namespace, groups, pods):
    for number, group in enumerate(groups, 1):
        namespace.deploy(group)
        namespace.until_running(number * group["spec"]["replicas"])
    assert split(namespace.pods()) == {}


def test_groups_that_come_mixed_are_on_one_node_each(namespace: Namespace):
    namespace.deploy(*PAIRS, *TENS)
    namespace.until_running(380)
    assert split(namespace.pods()) == {}


def test_groups_of_unlike_sizes_that_come_at_once_are_on_one_node_each(namespace: Namespace):
    """Sixteen of 5 to 40 pods, a sixth of all CPUs: each fits one NUMA node, and several not beside each other."""
    cpus = ("250m", "1500m", "1", "1500m")
    groups = [member(f"unlike-{at}", 5 + at * 11 % 36, cpu=cpus[at % len(cpus)]) for at in range(16)]
    namespace.deploy(*groups)
    namespace.until_running(sum(group["spec"]["replicas"] for group in groups))
    assert split(namespace.pods()) == {}
