"""What relief watches: each NUMA node, and whatever else members are confined to, with where they would be let out to."""

from __future__ import annotations

import pytest

from numakin.placement.decide.relief import Domain, domains, wider_sets
from numakin.placement.model.cpuset import CpuSet, NumaSet
from numakin.placement.model.demand import Demand
from numakin.placement.state.occupancy import Allocation, Occupancy, Reservation
from tests import machines

MACHINE = machines.machine(
    "two sockets of two NUMA nodes",
    ["0-7", "8-15", "16-23", "24-31"],
    [16, 16, 16, 16],
    caches=["0-3", "4-7", *(f"{first}-{first + 3}" for first in range(8, 32, 4))],
    sockets=["0-15", "16-31"],
)


def watched(homes: str, cache: str = "", out: str = "") -> list[Domain]:
    """Where one member is at home there."""
    node, domain, to = NumaSet.parse(homes), CpuSet.parse(cache), NumaSet.parse(out)
    member = Reservation("a", "a", "shop/a", node, Demand(1000), cache_domain=domain, let_out=to)
    cpus = MACHINE.cpus_of(to or node) if to or not domain else domain
    return domains(MACHINE, Occupancy({"a": member}, {"a-main": Allocation("a-main", "main", "a", "a", cpus)}))


def around(found: list[Domain], cpus: str) -> list[str]:
    """Where members are let out of the domain to, one after the other."""
    domain = next(each for each in found if str(each.cpus) == cpus)
    return [str(to) for to in wider_sets(MACHINE, Occupancy(), domain)]


@pytest.mark.parametrize(
    ("member", "cpus", "to"),
    [
        ({"homes": "0"}, "0-7", ["0-1", "0-3"]),
        ({"homes": "0-1"}, "0-15", ["0-3"]),
        ({"homes": "0,2"}, "0-7,16-23", ["0-3"]),
        ({"homes": "0", "cache": "0-3"}, "0-3", ["0", "0-1", "0-3"]),
        ({"homes": "0", "out": "0-1"}, "0-15", ["0-3"]),
    ],
    ids=["a NUMA node", "a socket's two", "two of two sockets", "a cache", "those where it is let out to"],
)
def test_what_members_are_confined_to_is_watched_and_left_for_what_is_around_it(
    member: dict[str, str], cpus: str, to: list[str]
) -> None:
    assert around(watched(**member), cpus) == to


def test_the_whole_machine_is_not_watched_as_there_is_nothing_around_it() -> None:
    assert {str(each.cpus) for each in watched("0-3")} == {"0-7", "8-15", "16-23", "24-31"}


def test_a_member_is_inside_of_what_holds_all_of_its_cpus_and_out_of_what_it_has_left() -> None:
    found = {str(each.cpus): each for each in watched("0", out="0-1")}
    assert (found["0-7"].inside, found["0-7"].out) == ((), ("a",))
    assert (found["0-15"].inside, found["0-15"].out) == (("a",), ())
