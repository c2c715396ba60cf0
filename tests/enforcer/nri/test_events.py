import pytest

from enforcer.nri.dispatch import ROWS, subscription
from enforcer.nri.events import Event, Runtime
from enforcer.nri.handlers import Handlers

ALL = Handlers(**{row.handler: lambda *_: None for row in ROWS})


@pytest.mark.parametrize(
    ("name", "version", "nri_version", "events"),
    [
        ("containerd", "1.7.24~ds1", "", 0x7FF),
        ("containerd", "2.1.9+unknown", "", 0x7FF),
        ("containerd", "v2.1.9", "", 0x7FF),
        ("containerd", "v2.2.0-rc.1", "", 0x7FF),
        ("containerd", "v2.2.0", "", 0x3FFF),
        ("containerd", "2.2", "", 0x3FFF),
        ("containerd", "v2.2.1-dirty", "", 0x3FFF),
        ("containerd", "3.0.0", "", 0x3FFF),
        ("cri-o", "1.33.9", "", 0x7FF),
        ("cri-o", "1.34.0", "", 0x3FFF),
        ("CRI-O", "1.35.2", "", 0x3FFF),
        ("isulad", "2.1.5", "", 0x7FF),
        ("isulad", "9.9.9", "", 0x7FF),
        ("isulad", "2.1.5", "v0.12.0", 0x3FFF),
        ("containerd", "2.1.9", "0.10.0", 0x3FFF),
        ("containerd", "2.1.9", "v0.9.0", 0x7FF),
        ("containerd", "", "", 0x7FF),
        ("containerd", "unknown", "(devel)", 0x7FF),
        ("", "9" * 5000, "", 0x7FF),
    ],
)
def test_a_subscription_never_has_a_bit_that_the_runtime_may_not_know(name, version, nri_version, events):
    runtime = Runtime(name, version, nri_version)
    assert subscription(ALL, runtime.valid_events) == events


@pytest.mark.parametrize(
    ("nri_version", "safe"), [("", False), ("v0.12.0", False), ("v0.12.1", True), ("0.13.0", True), ("(devel)", False)]
)
def test_updates_out_of_turn_are_for_runtimes_that_do_not_lock_up_over_them(nri_version, safe):
    assert Runtime("containerd", "2.3.0", nri_version).takes_updates_any_time is safe


@pytest.mark.parametrize("event", Event, ids=lambda event: event.name.lower())
def test_an_event_is_asked_for_when_there_is_a_handler_for_it(event):
    handlers = Handlers(**{event.name.lower(): lambda *_: None})
    assert subscription(handlers, 0x3FFF) == 1 << (event - 1)


def test_create_container_alone_is_mask_8_as_recorded():
    assert subscription(Handlers(create_container=lambda *_: (None, [])), 0x7FF) == 0x8
