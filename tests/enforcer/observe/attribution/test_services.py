"""Behind a Service the pair is still the pair, where both of its ends tell."""

import pytest

from enforcer.observe.attribution.attribution import attribute
from enforcer.observe.attribution.edges import Remote
from enforcer.observe.attribution.services import READINGS, Services, Target
from enforcer.observe.bpf.counters import TCP, UDP, Volume, peer
from tests.enforcer.observe.attribution.residents import (
    AGENT,
    ANSWERS,
    APP,
    DB,
    DB_IP,
    NODE,
    OUTSIDE,
    REQUESTS,
    RESIDENTS,
    SERVICE,
    WEB,
    WEB_IP,
    asked,
    both_ways,
    end,
    served,
)


@pytest.mark.parametrize("asked_address", [SERVICE, NODE], ids=["a Service's", "the node's (hostPort)"])
def test_behind_an_address_that_is_translated_the_pair_is_still_the_pair(asked_address):
    """The client's end sees the address that it asks: the same exchange, and no second edge."""
    result = attribute(served(DB, WEB_IP, 5432, ANSWERS) | asked(WEB, asked_address, 80, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(DB), end(WEB), ANSWERS, 5432)
    assert result.services == {Target(peer(asked_address), 80, TCP)}


def part(whole, share):
    return whole.scaled(share)


def test_of_a_service_with_servers_elsewhere_too_only_their_own_ends_tell():
    result = attribute(served(DB, WEB_IP, 5432, part(ANSWERS, 0.5)) | asked(WEB, SERVICE, 80, REQUESTS), RESIDENTS)
    assert set(result.edges) == both_ways(end(DB), end(WEB), part(ANSWERS, 0.5), 5432)


def test_two_servers_behind_one_service_are_known_by_their_sum():
    """Where what each has is not in the Service's proportion."""
    uneven = Volume(900, 13, 20, 14), Volume(109, 10, 81, 15)
    result = attribute(
        served(DB, WEB_IP, 5432, uneven[0]) | served(APP, WEB_IP, 5432, uneven[1]) | asked(WEB, SERVICE, 80, REQUESTS),
        RESIDENTS,
    )
    assert set(result.edges) == both_ways(end(DB), end(WEB), uneven[0], 5432) | both_ways(
        end(APP), end(WEB), uneven[1], 5432
    )


def test_a_service_once_recognised_stays_one_until_nobody_asks_it_for_long():
    services = Services().after({Target(peer(SERVICE), 80, TCP)})
    elsewhere = asked(WEB, SERVICE, 80, REQUESTS)
    assert attribute(elsewhere, RESIDENTS, services=services).edges == ()
    for _ in range(READINGS + 1):
        assert Target(peer(SERVICE), 80, TCP) in services
        services = services.after(())
    assert attribute(elsewhere, RESIDENTS, services=services).edges


@pytest.mark.parametrize(
    "others",
    [
        asked(WEB, OUTSIDE, 443, REQUESTS) | asked(WEB, SERVICE, 80, REQUESTS),
        asked(WEB, OUTSIDE, 443, Volume(101, 29, 40_000, 60)),
        asked(WEB, OUTSIDE, 443, Volume(50, 29, 500, 23)),
        asked(WEB, OUTSIDE, 443, REQUESTS) | asked(WEB, DB_IP, 5432, REQUESTS),
        asked(APP, OUTSIDE, 443, REQUESTS),
        asked(AGENT, OUTSIDE, 443, REQUESTS),
        asked(WEB, OUTSIDE, 443, REQUESTS, UDP),
    ],
    ids=[
        "two addresses may be it", "another proportion", "less than the server's", "the server was asked itself",
        "another pod's", "of the host's network", "another protocol",
    ],
)  # fmt: skip
def test_what_may_be_another_exchange_stays_an_edge(others):
    result = attribute(served(DB, WEB_IP, 5432, ANSWERS) | others, RESIDENTS)
    assert any(Remote(OUTSIDE) in (edge.source, edge.target) for edge in result.edges)
    assert not result.services


def test_a_few_messages_recognise_nothing():
    little = Volume(100, 2, 10, 2)
    result = attribute(served(DB, WEB_IP, 5432, little) | asked(WEB, SERVICE, 80, Volume(10, 2, 100, 2)), RESIDENTS)
    assert not result.services


@pytest.mark.parametrize(("messages", "recognised"), [(3, False), (4, True)], ids=["too few", "enough"])
@pytest.mark.parametrize("scale", [1.0, 1.3, 10.0, 9.7])
def test_messages_are_as_many_as_the_probes_have_counted_however_seldom_they_are_on(scale, messages, recognised):
    """Not as many as a share of the time stands for. As many came as went."""
    answered, requested = (Volume(*sizes).scaled(scale) for sizes in ((100, messages, 10, messages), (10, 1, 100, 1)))
    counted = served(DB, WEB_IP, 5432, answered) | asked(WEB, SERVICE, 80, requested)
    assert bool(attribute(counted, RESIDENTS, scale=scale).services) is recognised
