"""Every member of the fall-back chain on a kernel that allows function exits and kprobes, which many machines refuse.

One boot runs tests/e2e/guest/chain.py; each test here reads what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from enforcer.observe.collectors import chain as members
from tests.e2e.guest import chain
from tests.e2e.lab import vm

pytestmark = [pytest.mark.numavm, pytest.mark.timeout(1500)]

MEMBERS = [name for name, _ in members.MEMBERS]
BY_CALL = ["socket_tracepoints", "fexit", "kprobes"]

TCP = [one for one in chain.EXCHANGES if one.kind == "tcp"]
UDP = [one for one in chain.EXCHANGES if one.kind == "udp"]
SMALL = [one for one in chain.EXCHANGES if one.request < 1000]


def within_a_percent(size: int) -> Any:
    return pytest.approx(size, rel=0.01)


class Found:
    """What the boot printed. refusals: member -> what the kernel said. exchanges: name -> member -> end -> volume."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.refusals: dict[str, str] = {
            record["member"]: record["refused"] for record in records if "member" in record
        }
        self.exchanges: dict[str, Any] = {
            record["exchange"]: record["counted"] for record in records if "exchange" in record
        }
        self.web: dict[str, Any] = next(record for record in records if "web" in record)


@pytest.fixture(scope="module")
def found(numavm: Callable[..., vm.Result]) -> Found:
    result = numavm("2x4", ["python3", "-m", chain.__name__], timeout_s=1200)
    assert result.status == 0, result.output[-20000:] + result.messages
    return Found(result.records())


def exchanges(*kept: list[chain.Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", [one for some in kept for one in some], ids=lambda one: one.name)


@pytest.mark.parametrize("member", MEMBERS)
def test_every_member_counts_on_this_kernel(found: Found, member: str) -> None:
    assert found.refusals[member] == ""


@pytest.mark.parametrize("member", MEMBERS)
@exchanges(TCP)
def test_tcp_is_counted_within_a_percent_in_both_directions_at_both_ends(
    found: Found, member: str, exchange: chain.Exchange
) -> None:
    ends = found.exchanges[exchange.name][member]
    assert ends["client"]["peer"] == chain.SERVER[exchange.version]
    assert ends["server"]["peer"] == chain.CLIENT[exchange.version]
    assert ends["client"]["tx_bytes"] == ends["server"]["rx_bytes"] == within_a_percent(exchange.asked)
    assert ends["client"]["rx_bytes"] == ends["server"]["tx_bytes"] == within_a_percent(exchange.answered)


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
@exchanges(UDP)
def test_udp_is_counted_within_a_percent_in_both_directions_at_both_ends(
    found: Found, member: str, exchange: chain.Exchange
) -> None:
    ends = found.exchanges[exchange.name][member]
    assert ends["client"]["peer"] == chain.SERVER[exchange.version]
    assert ends["client"]["tx_bytes"] == ends["server"]["rx_bytes"] == within_a_percent(exchange.asked)
    assert ends["client"]["rx_bytes"] == ends["server"]["tx_bytes"] == within_a_percent(exchange.answered)


@exchanges(UDP)
def test_only_packets_tell_the_server_of_udp_who_asks(found: Found, exchange: chain.Exchange) -> None:
    counted = found.exchanges[exchange.name]
    assert counted["cgroup_skb"]["server"]["peer"] == chain.CLIENT[exchange.version]
    for member in BY_CALL:
        assert counted[member]["server"]["peer"] == {4: "0.0.0.0", 6: "::"}[exchange.version]


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
@exchanges(SMALL)
def test_a_small_request_and_its_reply_are_a_message_each(found: Found, member: str, exchange: chain.Exchange) -> None:
    for end in found.exchanges[exchange.name][member].values():
        assert (end["tx_messages"], end["rx_messages"]) == (within_a_percent(exchange.count),) * 2


@pytest.mark.parametrize("member", BY_CALL)
@exchanges([one for one in TCP if one not in SMALL])
def test_a_message_is_a_call_however_large(found: Found, member: str, exchange: chain.Exchange) -> None:
    for end in found.exchanges[exchange.name][member].values():
        assert end["tx_messages"] == exchange.count


@pytest.mark.parametrize("member", ["cgroup_skb", *BY_CALL])
def test_nginx_that_sends_a_file_is_counted_within_a_percent_of_its_own_log(found: Found, member: str) -> None:
    log, counted = found.web["web"], found.web["counted"][member]["server"]
    assert log["requests"] > 100
    assert counted["rx_bytes"] == within_a_percent(log["asked"])
    assert counted["tx_bytes"] == within_a_percent(log["answered"])
