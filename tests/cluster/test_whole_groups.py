"""Groups stay whole on a real kube-scheduler: the main job."""

from __future__ import annotations

import pytest

from tests import examples
from tests.cluster.workloads import Namespace, member, replicas, split

PAIRS = [member(f"pair-{number}", 2) for number in range(40)]
TENS = [member(f"ten-{number}", 10) for number in range(30)]


@pytest.mark.parametrize("groups", [PAIRS, TENS], ids=["pairs", "groups of ten"])
def test_groups_that_come_one_after_the_other_are_on_one_node_each(namespace: Namespace, groups):
    """A quarter of them in `make test`: each comes to what the one before left."""
    for number in range(1, examples.of(len(groups)) + 1):
        namespace.deploy(groups[number - 1])
        namespace.until_running(replicas(groups[:number]))
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
    namespace.until_running(replicas(groups))
    assert split(namespace.pods()) == {}
