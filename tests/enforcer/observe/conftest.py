import os

import observe_lab
import pytest

from enforcer.observe import cgroup_skb
from enforcer.observe.loader import Refused


@pytest.fixture(scope="session")
def bpf_allowed():
    """Skips with the kernel's own words where BPF programs can't be loaded and attached."""
    root = observe_lab.cgroup_root()
    if os.geteuid() != 0 or root is None:
        pytest.skip("needs root and cgroup v2")
    try:
        collector = cgroup_skb.open_collector(root, edges=64)
        collector.attach()
        collector.close()
    except (Refused, OSError) as error:
        pytest.skip(f"the kernel refuses: {error}")


@pytest.fixture
def lab(bpf_allowed):
    with observe_lab.lab() as built:
        yield built
