"""How long a test may take: one that waits for nothing must not stay unnoticed. A plugin of pytest.

Speed is measured in `benchmarks/`. Here is only seen what sleeps until a patience ends, or does in half a minute what
belongs to the tests of another tier. The bound grows with the machine's load: none fails for what others compute meanwhile.

How long a run may take is told by the environment (UNTIL), since a run that CI ends tells nothing: what could not be begun
in time is skipped, and named like all that could not run.

Of several processes that run tests side by side each begins the next file when the CPUs are not overrun: what many wait for
at once comes to each after its patience. As many of them collect at a time as there are CPUs: what none has compiled yet is
compiled by those that come first, and read by the others.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

MOST_S = 20.0
"""Of a test, with the fixtures that it does not share, on a machine that does nothing else."""

LOAD_PER_CPU = 0.5
"""Load average of the last minute, by CPU, up to which MOST_S holds; above, the bound grows in proportion. Half of what
one busy process for each CPU makes, since the average follows by half a minute.
"""

MAY_TAKE_LONGER = {
    "tests/benchmarks/test_cluster.py": "whole clusters are played, which takes 10 to 24 s of one CPU",
    "tests/cluster/": "real controllers, kube-scheduler and Helm go at their own pace",
    "tests/e2e/test_installed.py": "a real kubelet starts, restarts and ends pods at its own pace",
    "tests/e2e/test_real_devices.py": "a real kubelet starts, restarts and ends pods at its own pace",
    "tests/e2e/test_real_node.py": "a real kubelet starts, restarts and ends pods at its own pace",
    "tests/e2e/test_real_resizes.py": "a real kubelet starts, restarts and ends pods at its own pace",
    "tests/fuzz/": "thousands of mutated inputs for each parser",
    "tests/tools/release/test_release.py": "wheel, sdist and lists of contents are made",
    "tests/tools/setup/test_built_images.py": "images are built and started",
    "tests/soak/test_soak.py": "every fault once, each with its recovery",
}
"""By the beginning of a test's name, why."""

UNTIL = "NUMAKIN_TESTS_UNTIL"
"""Of the environment: seconds since 1970 after which no file's tests are begun. What tests start does not get it."""

LATEST = pytest.StashKey[float]()

LONGEST_FILE_S = 1200.0
"""So much earlier are those of the second tier begun at the latest: emulated machines and clusters take that long where
this machine is three times slower than the one that CI usually has.
"""

MOST_RUNNING = 4.0
"""Threads that compute or wait for a CPU, by CPU, beside which a file's tests are begun. Beside more, they compute no
earlier than when others have ended.
"""

MOST_HELD_BACK_S = 600.0
"""In all, of each process that runs tests: what else computes here may never end."""

EMULATED = "numavm"
"""The marker of tests that read what an emulated machine computed, which takes minutes."""

ONE_CLUSTER = "tests/cluster/"
"""The beginning of names of tests most of which share a control plane: one after the other they take nearly as long as all
the others together.
"""

ONE_BOOT = "four_nodes"
"""The fixture of those that read what one and the same machine computed."""


def load() -> float:
    """Of the last minute, by CPU."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def now() -> float:
    """Seconds since 1970."""
    return time.time()


def running() -> float:
    """Threads that compute or wait for a CPU at this moment, by CPU; proc_loadavg(5), fourth field."""
    count, _all = Path("/proc/loadavg").read_text().split()[3].split("/")
    return int(count) / (os.cpu_count() or 1)


def bound(load_by_cpu: float) -> float:
    """Seconds that a test may take where the machine has this load."""
    return MOST_S * max(1.0, load_by_cpu / LOAD_PER_CPU)


def may_take_longer(item: pytest.Item) -> bool:
    return item.get_closest_marker(EMULATED) is not None or item.nodeid.startswith(tuple(MAY_TAKE_LONGER))


@dataclass
class _Watch:
    """Of one test: load at its begin, seconds of its own so far, and of fixtures that it shares with others."""

    load: float
    own_s: float = 0.0
    shared_s: float = 0.0
    sharing: int = 0
    ends_shared: bool = False
    told: bool = False


WATCH = pytest.StashKey[_Watch]()


_in_time: dict[tuple[str, bool], bool] = {}
"""Whether tests were begun in time, by what is run whole once it was begun, and whether it is of the second tier: a file,
or those of ONE_BOOT.
"""


def pytest_configure(config: pytest.Config) -> None:
    starts_workers = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    config.stash[LATEST] = float((os.environ.get if starts_workers else os.environ.pop)(UNTIL, "inf"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    thorough = item.get_closest_marker("thorough") is not None
    shared = ONE_BOOT in getattr(item, "fixturenames", ())
    begun_together = (ONE_BOOT if shared else str(item.path), thorough)
    if begun_together not in _in_time:
        latest = item.config.stash[LATEST] - (LONGEST_FILE_S if thorough else 0.0)
        _in_time[begun_together] = now() < latest
    if not _in_time[begun_together]:
        pytest.skip("the time of this run was over: the machine is much slower than usual")


@dataclass
class Room:
    """Whether the CPUs have room for another file's tests, and for how much longer they are waited for."""

    left_s: float = MOST_HELD_BACK_S
    measure: Callable[[], float] = running
    rest: Callable[[float], None] = time.sleep
    every_s: float = 0.5

    def wait(self) -> None:
        while self.left_s > 0 and self.measure() > MOST_RUNNING:
            self.rest(self.every_s)
            self.left_s -= self.every_s


@contextmanager
def turn(number: int, places: int) -> Iterator[None]:
    """Of the processes whose numbers leave the same remainder, one is within at a time. Who is first locks a file of ours."""
    ours = sorted(Path(__file__).parent.glob("*.py"))
    with ours[number % min(places, len(ours))].open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return (yield)
    with turn(int(worker["workerid"].removeprefix("gw")), os.cpu_count() or 1):
        return (yield)


_room = Room()
_begun: set[Path] = set()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Emulated machines and the cluster that many share wait for nobody: they take longest, and begin first."""
    side_by_side = hasattr(item.config, "workerinput")
    longest = item.get_closest_marker(EMULATED) is not None or item.nodeid.startswith(ONE_CLUSTER)
    if side_by_side and item.path not in _begun and not longest:
        _room.wait()
    _begun.add(item.path)
    item.stash[WATCH] = _Watch(load())
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Measures those that others share; what one of them asks for is within it."""
    watch = request._pyfuncitem.stash.get(WATCH, None)
    if fixturedef.scope == "function" or watch is None:
        return (yield)
    watch.sharing += 1
    begin = time.perf_counter()
    try:
        return (yield)
    finally:
        watch.sharing -= 1
        if watch.sharing == 0:
            watch.shared_s += time.perf_counter() - begin


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What is shared ends with the last test that needs it: then its end is not told from the test's own."""
    item.stash[WATCH].ends_shared = nextitem is None or nextitem.parent is not item.parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    watch = item.stash[WATCH]
    if call.when == "setup":
        watch.own_s += call.duration - watch.shared_s
    elif call.when == "call" or not watch.ends_shared:
        watch.own_s += call.duration
    most = bound(max(watch.load, load()))
    if report.passed and call.when != "setup" and watch.own_s > most and not watch.told and not may_take_longer(item):
        report.outcome, watch.told = "failed", True
        report.longrepr = (
            f"took {watch.own_s:.0f} s, where a test may take {most:.0f} s: does it wait for what does not come? "
            "tests/pace.py lists those that may take longer, and why"
        )
    return report
