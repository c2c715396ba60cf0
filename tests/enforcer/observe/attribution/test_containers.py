from ipaddress import ip_address

from enforcer.observe.attribution.containers import GONE_MAX, GONE_READINGS, ContainerIndex, LocalContainer


def one(number):
    address = ip_address(f"10.0.{number // 250}.{number % 250 + 1}")
    return LocalContainer(f"c{number}", f"pod{number}", frozenset({number}), (address,))


def test_a_gone_container_is_forgotten_after_so_many_readings():
    residents = ContainerIndex.of([one(7)]).after([])
    for _ in range(GONE_READINGS - 1):
        residents = residents.aged()
    assert residents.by_cgroup(7) == one(7)
    assert residents.aged().by_cgroup(7) is None


def test_the_memory_of_gone_containers_is_bounded_and_drops_the_oldest():
    residents = ContainerIndex.of([one(number) for number in range(GONE_MAX)]).after([one(GONE_MAX)]).after([])
    assert len(residents.gone) == GONE_MAX
    assert residents.by_cgroup(0) is None
    assert residents.by_cgroup(GONE_MAX) == one(GONE_MAX)


def test_a_container_that_returns_is_no_longer_gone():
    assert ContainerIndex.of([one(7)]).after([]).after([one(7)]).gone == ()
