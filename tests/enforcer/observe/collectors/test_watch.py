from ipaddress import ip_address

import pytest

from enforcer.observe.bpf.counters import TCP, CounterSnapshot, FlowKey, Missed, Volume, peer
from enforcer.observe.collectors.duty import DutyCycle
from enforcer.observe.collectors.watch import CollectorPair

KEY = FlowKey(7, peer(ip_address("10.0.0.1")), 80, True, TCP)


class Meter:
    """A collector whose traffic the test makes: it flows always, and is counted while attached."""

    name = "meter"

    def __init__(self):
        self.attached = self.closed = False
        self.counted = Volume()

    def flow(self, volume):
        if self.attached:
            self.counted += volume

    def attach(self):
        self.attached = True

    def detach(self):
        self.attached = False

    def drain(self):
        return CounterSnapshot(
            {KEY: self.counted} if self.counted != Volume() else {}, Missed(self.counted.tx_messages)
        )

    def close(self):
        self.closed = True


def run(watch, meter, seconds):
    """A kilobyte and a message every tenth of a second, the watch stepped at each."""
    for tick in range(seconds * 10):
        watch.step(tick / 10)
        meter.flow(Volume(1000, 1))
    watch.step(seconds)
    return watch.read(seconds)


def test_with_the_probes_always_on_counts_are_exact_and_not_scaled():
    meter = Meter()
    reading = run(CollectorPair([meter], DutyCycle(1, 10), 0), meter, 30)
    assert reading.delta.counters == {KEY: Volume(300_000, 300)}
    assert reading.scale == 1.0


def test_a_tenth_of_the_time_is_scaled_to_all_of_it_and_says_so():
    meter = Meter()
    reading = run(CollectorPair([meter], DutyCycle(0.1, 10), 0), meter, 100)
    assert reading.scale == pytest.approx(10, rel=0.1)
    assert reading.delta.counters[KEY].tx_bytes == pytest.approx(1_000_000, rel=0.1)
    assert reading.delta.missed.full_bytes == pytest.approx(1000, rel=0.1), "what was missed, too"


@pytest.mark.parametrize("seconds", [1, 5, 7, 10.3, 16], ids=lambda seconds: f"readings of {seconds} s")
def test_readings_that_do_not_begin_with_the_periods_tell_as_much_as_flows(seconds):
    meter, told, tick = Meter(), 0, 0
    watch = CollectorPair([meter], DutyCycle(0.1, 10), 0)
    for number in range(1, int(2000 / seconds)):
        while tick / 10 < number * seconds:
            watch.step(tick / 10)
            meter.flow(Volume(1000, 1))
            tick += 1
        told += watch.read(number * seconds).delta.counters.get(KEY, Volume()).tx_bytes
    assert told == pytest.approx(1000 * tick, rel=0.02)


def test_time_on_that_was_missed_is_made_up_for():
    """The watch is stepped late: half a second into each second that the probes should be on."""
    meter, told = Meter(), 0
    duty = DutyCycle(0.1, 10)
    watch, late = CollectorPair([meter], duty, 0), 0.0
    for tick in range(20_000):
        late = late + 0.1 if duty.phase(tick / 10).on else 0.0
        if not 0 < late < 0.55:
            watch.step(tick / 10)
        meter.flow(Volume(1000, 1))
        if tick % 100 == 99:
            told += watch.read((tick + 1) / 10).delta.counters.get(KEY, Volume()).tx_bytes
    assert told == pytest.approx(20_000_000, rel=0.05)


def test_readings_are_differences():
    meter = Meter()
    watch = CollectorPair([meter], DutyCycle(1, 10), 0)
    watch.step(0)
    meter.flow(Volume(101, 1))
    assert watch.read(1).delta.counters == {KEY: Volume(101, 1)}
    assert watch.read(2).delta.counters == {}


def test_a_reading_without_a_moment_on_counts_nothing():
    reading = CollectorPair([Meter()], DutyCycle(0.1, 10), 0).read(1)
    assert reading.delta.counters == {}
    assert (reading.seconds, reading.seconds_on) == (1, 0)


def test_closing_the_watch_closes_its_collectors():
    meter = Meter()
    CollectorPair([meter], DutyCycle(1, 10), 0).close()
    assert meter.closed
