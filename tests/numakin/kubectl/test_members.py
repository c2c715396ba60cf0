"""A pod whose containers are placed one by one is one member, on all of their NUMA nodes."""

from __future__ import annotations

from numakin.kubectl.commands.cluster_map import _places
from numakin.kubectl.commands.groups import _rendered
from numakin.kubectl.members import by_pod
from numakin.terminal import console


def member(uid: str, numa_nodes: str, node: str = "node-1") -> dict[str, object]:
    return {"uid": uid, "pod": None, "node": node, "numa_nodes": numa_nodes, "cache_domain": "", "expected": False}


MEMBERS = [member("a", "1"), member("a", "0"), member("b", "1"), member("c", "", "node-2")]


def test_a_pod_is_on_all_numa_nodes_of_its_containers():
    assert {uid: (node, str(place)) for uid, (node, place) in by_pod(MEMBERS).items()} == {
        "a": ("node-1", "0-1"),
        "b": ("node-1", "1"),
        "c": ("node-2", ""),
    }


def test_the_map_counts_it_once_on_each_numa_node_where_it_is():
    sidecars = [member("a", "1"), member("b", "0-1"), member("b", "1")]
    places = _places([{"group": "shop/boutique", "members": [*MEMBERS[:2], *sidecars]}])
    assert places == {("node-1", 0): {"shop/boutique": 2}, ("node-1", 1): {"shop/boutique": 2}}


def test_groups_counts_it_once(capsys):
    for part in _rendered([{"group": "shop/boutique", "locality": 0.5, "members": MEMBERS}], "", wide=False):
        console().print(part)
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("shop/boutique"))
    assert row.split()[1] == "3"
    assert "node-1:0-1 x1, node-1:1 x1, node-2: x1" in row
