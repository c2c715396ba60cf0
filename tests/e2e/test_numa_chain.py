"""Every member of the fall-back chain on a kernel that allows function exits and kprobes, which many machines refuse.

tests/e2e/guest/chain.py runs there, in one boot with others; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from enforcer.observe.collectors import chain as members
from tests.e2e.guest import chain
from tests.e2e.lab import vm

pytestmark = [pytest.mark.thorough, pytest.mark.numavm, pytest.mark.timeout(vm.TEST_S)]

GUEST = chain

MEMBERS = [name for name, _ in members.MEMBERS]
BY_CALL = ["socket_tracepoints", "fexit", "kprobes"]

TCP = [entry for entry in chain.EXCHANGES if entry.kind == "tcp"]
UDP = [entry for entry in chain.EXCHANGES if entry.kind == "udp"]
SMALL = [entry for entry in chain.EXCHANGES if entry.request < 1000]


def within_a_percent(size: int) -> Any:
    return pytest.approx(size, rel=0.01)


class Observed:
    """What the boot printed. refusals: member -> what the kernel said. how: member -> how its programs were loaded.
    exchanges: name -> member -> end -> volume.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.refusals: dict[str, str] = {
            record["member"]: record["refused"] for record in records if "member" in record
        }
        self.how: dict[str, str] = {record["member"]: record["how"] for record in records if "member" in record}
        self.exchanges: dict[str, Any] = {
            record["exchange"]: record["counted"] for record in records if "exchange" in record
        }
        self.web: dict[str, Any] = next(record for record in records if "web" in record)


@pytest.fixture(scope="module")
def observed(four_nodes: Callable[[ModuleType], vm.Result]) -> Observed:
    result = four_nodes(GUEST)
    assert result.status == 0, result.failure()
    return Observed(result.records())


def exchanges(*kept: list[chain.Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", [entry for some in kept for entry in some], ids=lambda entry: entry.name)


@pytest.mark.parametrize("member", MEMBERS)
def test_every_member_counts_on_this_kernel(observed: Observed, member: str) -> None:
    assert observed.refusals[member] == ""


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
def test_this_kernel_takes_the_programs_as_they_were_built_ahead(observed: Observed, member: str) -> None:
    assert observed.how[member] == "built ahead"


@pytest.mark.parametrize("member", MEMBERS)
@exchanges(TCP)
def test_tcp_is_counted_within_a_percent_in_both_directions_at_both_ends(
    observed: Observed, member: str, exchange: chain.Exchange
) -> None:
    ends = observed.exchanges[exchange.name][member]
    assert ends["client"]["peer"] == chain.SERVER[exchange.version]
    assert ends["server"]["peer"] == chain.CLIENT[exchange.version]
    assert ends["client"]["tx_bytes"] == ends["server"]["rx_bytes"] == within_a_percent(exchange.asked)
    assert ends["client"]["rx_bytes"] == ends["server"]["tx_bytes"] == within_a_percent(exchange.answered)


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
@exchanges(UDP)
def test_udp_is_counted_within_a_percent_in_both_directions_at_both_ends(
    observed: Observed, member: str, exchange: chain.Exchange
) -> None:
    ends = observed.exchanges[exchange.name][member]
    assert ends["client"]["peer"] == chain.SERVER[exchange.version]
    assert ends["client"]["tx_bytes"] == ends["server"]["rx_bytes"] == within_a_percent(exchange.asked)
    assert ends["client"]["rx_bytes"] == ends["server"]["tx_bytes"] == within_a_percent(exchange.answered)


@exchanges(UDP)
def test_only_packets_tell_the_server_of_udp_who_asks(observed: Observed, exchange: chain.Exchange) -> None:
    counted = observed.exchanges[exchange.name]
    assert counted["cgroup_skb"]["server"]["peer"] == chain.CLIENT[exchange.version]
    for member in BY_CALL:
        assert counted[member]["server"]["peer"] == {4: "0.0.0.0", 6: "::"}[exchange.version]


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
@exchanges(SMALL)
def test_a_small_request_and_its_reply_are_a_message_each(
    observed: Observed, member: str, exchange: chain.Exchange
) -> None:
    for end in observed.exchanges[exchange.name][member].values():
        assert (end["tx_messages"], end["rx_messages"]) == (within_a_percent(exchange.count),) * 2


@pytest.mark.parametrize("member", BY_CALL)
@exchanges([entry for entry in TCP if entry not in SMALL])
def test_a_message_is_a_call_however_large(observed: Observed, member: str, exchange: chain.Exchange) -> None:
    for end in observed.exchanges[exchange.name][member].values():
        assert end["tx_messages"] == exchange.count


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
def test_nginx_that_sends_a_file_is_counted_within_a_percent_of_its_own_log(observed: Observed, member: str) -> None:
    log, counted = observed.web["web"], observed.web["counted"][member]["server"]
    assert log["requests"] > 100
    assert counted["rx_bytes"] == within_a_percent(log["asked"])
    assert counted["tx_bytes"] == within_a_percent(log["answered"])
