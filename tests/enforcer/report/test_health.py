from __future__ import annotations

from dataclasses import replace

from enforcer.machine.pci import Device
from enforcer.report.health import EVERY_S, HealthNews
from numakin.process.threads import Standing
from numakin.wire import bounds

WELL = Standing("stream", 1.0, stale=False, essential=False, failures=0, error="")
FAILING = replace(WELL, stale=True, since_success_s=70.0, failures=3, error="OSError: no route")
CARD = Device("0000:81:00.0", "network", "mlx5_core", ("eth0", "mlx5_0"), 1)


class Enforcer:
    """Whose health is told, at a time that the test sets."""

    def __init__(self) -> None:
        self.standings, self.collector, self.now = [WELL], "cgroup_skb", 0.0
        self.devices: tuple[Device, ...] = (CARD,)
        self.readings = 0
        self.news = HealthNews(
            lambda: self.collector, lambda: "registered", lambda: self.standings, self._read, clock=lambda: self.now
        )

    def _read(self) -> tuple[Device, ...]:
        self.readings += 1
        return self.devices


def test_it_is_told_once_while_nothing_changes() -> None:
    enforcer = Enforcer()
    health = enforcer.news.due()
    assert health is not None
    assert (health.collector, health.runtime, [thread.name for thread in health.threads]) == (
        "cgroup_skb", "registered", ["stream"],
    )  # fmt: skip
    assert enforcer.news.due() is None


def test_that_time_passes_is_no_change() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.standings, enforcer.now = [replace(WELL, since_success_s=4.0)], EVERY_S - 1
    assert enforcer.news.due() is None
    enforcer.now = EVERY_S
    assert enforcer.news.due() is not None


def test_a_thread_that_gets_nowhere_is_told_at_once() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.standings = [FAILING]
    health = enforcer.news.due()
    assert health is not None
    (thread,) = health.threads
    assert (thread.stale, thread.failures, thread.error) == (True, 3, "OSError: no route")


def test_another_collector_is_told_at_once() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.collector = "none"
    assert enforcer.news.due() is not None


def test_a_stream_that_begins_anew_is_told_everything() -> None:
    enforcer = Enforcer()
    enforcer.news.due()
    enforcer.news.begin()
    assert enforcer.news.due() is not None


def test_devices_are_sent_and_read_anew_with_what_is_sent_now_and_then() -> None:
    enforcer = Enforcer()
    first = enforcer.news.due()
    assert first is not None
    (sent,) = first.devices
    assert (sent.address, sent.kind, sent.driver, list(sent.names), sent.numa_node) == (
        "0000:81:00.0", "network", "mlx5_core", ["eth0", "mlx5_0"], 1,
    )  # fmt: skip
    enforcer.devices, enforcer.now = (), EVERY_S - 1
    assert enforcer.news.due() is None
    assert enforcer.readings == 1
    enforcer.now = EVERY_S
    later = enforcer.news.due()
    assert later is not None
    assert not later.devices


def test_a_device_whose_numa_node_is_not_known_is_on_none_rather_than_on_0() -> None:
    enforcer = Enforcer()
    enforcer.devices = (replace(CARD, numa_node=None), replace(CARD, numa_node=0))
    health = enforcer.news.due()
    assert health is not None
    assert [device.HasField("numa_node") for device in health.devices] == [False, True]


def test_devices_beyond_the_bound_are_counted() -> None:
    enforcer = Enforcer()
    enforcer.devices = (CARD,) * (bounds.DEVICES + 5)
    health = enforcer.news.due()
    assert health is not None
    assert (len(health.devices), health.devices_left_out) == (bounds.DEVICES, 5)
