"""The hook decides by what the kernel says now, in steps worth backlog, and the extender predicts by the same figures."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given

from enforcer.hook.hardware.live import NOTABLE_CPU, NOTABLE_MEMORY, LiveReader, notable
from enforcer.machine.load import cpu_times
from enforcer.machine.sysfs import read_machine
from lab.standins.machines import MACHINES, write_procfs, write_sysfs
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.placement.decide.memory import STALLED
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.model.live_usage import NOTHING, Live
from tests.e2e.lab.idle import idle_procfs
from tests.enforcer.hook.hardware.figures import GIB, HUGE, KNOWN, PAGE, figures
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus

XEON = MACHINES["xeon-8380"]


def ticks(proc: Path, busy: int, idle: int, only: CpuSet) -> None:
    """Of the Xeon's CPUs since its boot: those in `only` are busy for part of it."""
    lines = [f"cpu{cpu} {busy if cpu in only else 0} 0 0 {idle} 0 0 0 0" for cpu in XEON.machine.cpus]
    draft = proc / "stat.draft"
    draft.write_text("\n".join(lines))
    draft.replace(proc / "stat")


@contextmanager
def ticking(proc: Path, only: CpuSet) -> Iterator[None]:
    """Meanwhile the CPUs in `only` are busy for nine tenths of the time, between whichever two readings."""
    ended = Event()

    def tick() -> None:
        for number in count():
            ticks(proc, 900 * number, 100 + 100 * number, only)
            if ended.wait(0.2):
                return

    ticks(proc, 0, 100, only)
    thread = Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Kernel:
    """The files of a machine with two NUMA nodes of 80 CPUs and 16 pages of 1 GiB, and a reader of them."""

    def __init__(self, folder: Path) -> None:
        self.sys, self.proc = folder / "sys", folder / "proc"
        self.machine = XEON.machine
        write_sysfs(XEON, self.sys)
        write_procfs(XEON, self.proc)
        self.reader = LiveReader(self.machine, self.sys, self.proc)

    def ticks(self, busy: int, idle: int, only: CpuSet) -> None:
        ticks(self.proc, busy, idle, only)

    def pressure(self, avg10: float) -> None:
        (self.proc / "pressure").mkdir(exist_ok=True)
        (self.proc / "pressure/memory").write_text(f"some avg10={avg10:.2f} avg60=0.00 avg300=0.00 total=1\n")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def busy_ticks() -> int:
    """Of this machine's CPUs, since boot."""
    return sum(cpu_time.busy for cpu_time in cpu_times().values())


class TestReader:
    def test_used_cpu_is_known_from_the_second_reading_on(self, kernel: Kernel) -> None:
        first = kernel.machine.numa_nodes[0]
        kernel.ticks(0, 0, first.cpus)
        assert kernel.reader.load().used_cpu == {}
        kernel.ticks(50, 50, first.cpus)
        used = kernel.reader.load().used_cpu
        assert used == {node.id: 500 * len(node.cpus) if node is first else 0 for node in kernel.machine.numa_nodes}

    def test_one_reading_turns_the_mean_by_a_twelfth(self, kernel: Kernel) -> None:
        first = kernel.machine.numa_nodes[0]
        for busy, idle in ((0, 0), (0, 100), (100, 100)):
            kernel.ticks(busy, idle, first.cpus)
            used = kernel.reader.load().used_cpu
        assert used[first.id] == pytest.approx(1000 * len(first.cpus) / 12, abs=1)

    def test_free_hugepages_are_told_by_numa_node_and_size(self, kernel: Kernel) -> None:
        pages = kernel.sys / "devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages"
        pages.write_text("3\n")
        assert kernel.reader.load().free_hugepages == {(0, GIB): 16 * GIB, (1, GIB): 3 * GIB}

    def test_a_kernel_without_pressure_stalls_nowhere(self, kernel: Kernel) -> None:
        assert set(kernel.reader.load().stalled.values()) == {0.0}

    def test_pressure_counts_where_memory_is_scarce(self, kernel: Kernel) -> None:
        kernel.pressure(30)
        assert set(kernel.reader.load().stalled.values()) == {0.0}, "there is plenty"
        (kernel.sys / "devices/system/node/node1/meminfo").write_text(
            "Node 1 MemTotal: 1000 kB\nNode 1 MemFree: 5 kB\n"
        )
        again = LiveReader(kernel.machine, kernel.sys, kernel.proc)
        assert again.load().stalled == {node.id: 0.3 if node.id == 1 else 0.0 for node in kernel.machine.numa_nodes}

    def test_what_cannot_be_read_is_not_known_and_said_once(
        self, kernel: Kernel, caplog: pytest.LogCaptureFixture
    ) -> None:
        (kernel.proc / "stat").write_text("nonsense")
        for _ in range(3):
            assert kernel.reader.load().used_cpu == {}
        assert caplog.messages.count("used CPU: not known") == 1
        kernel.ticks(0, 0, CpuSet())
        kernel.reader.load()
        (kernel.proc / "stat").write_text("nonsense")
        kernel.reader.load()
        assert caplog.messages.count("used CPU: not known") == 2

    def test_this_machine_tells_everything(self) -> None:
        machine = read_machine()
        reader = LiveReader(machine, Path("/sys"), Path("/proc"))
        reader.load()
        before = busy_ticks()
        while busy_ticks() < before + 3:  # a hundred a second while this loop runs
            pass
        live = reader.load()
        assert live.used_cpu.keys() == {node.id for node in machine.numa_nodes}
        assert 0 < sum(live.used_cpu.values()) <= 1000 * len(machine.cpus)
        assert all(0 <= share <= 1 for share in live.stalled.values())
        assert live.stalled.keys() == {node.id for node in machine.numa_nodes if node.memory}
        assert reader.free_memory() is reader.free_memory()


NOTABLE = {
    "the same": (KNOWN, NOTHING),
    "a little memory": (Live({0: 8 * GIB - GIB // 2}), NOTHING),
    "more memory": (Live({0: 8 * GIB - GIB // 2 - 1}), Live({0: 8 * GIB - GIB // 2 - 1})),
    "a little CPU": (Live(used_cpu={0: 2500}), NOTHING),
    "more CPU": (Live(used_cpu={0: 2501}), Live(used_cpu={0: 2501})),
    "one page": (Live(free_hugepages={(0, PAGE): 63 * PAGE}), Live(free_hugepages={(0, PAGE): 63 * PAGE})),
    "some pressure": (Live(stalled={0: 0.09}), NOTHING),
    "pressure": (Live(stalled={0: 0.1}), Live(stalled={0: 0.1})),
    "what was not known": (Live({1: 0}, used_cpu={1: 0}), Live({1: 0}, used_cpu={1: 0})),
    "a NUMA node that came later": (Live({7: GIB}, {(7, PAGE): PAGE}, {7: 5}, {7: 0.5}), NOTHING),
}


@pytest.mark.parametrize(("now", "news"), NOTABLE.values(), ids=NOTABLE.keys())
def test_only_what_is_notable_is_taken_over(now: Live, news: Live) -> None:
    assert notable(HUGE, KNOWN, now) == news


@pytest.mark.parametrize(
    ("readings", "received"),
    [
        ([0.08, 0.09, 0.08], [0.08]),
        ([0.09, 0.11, 0.09, 0.11, 0.06], [0.09, 0.11]),
        ([0.12, 0.06, 0.049], [0.12, 0.049]),
        ([0.1, 0.5, 0.55, 0.0], [0.1, 0.5, 0.0]),
    ],
    ids=["below", "about the threshold", "leaving", "rising further"],
)
def test_pressure_about_its_threshold_is_not_told_to_and_fro(readings: list[float], received: list[float]) -> None:
    known, result = NOTHING, []
    for share in readings:
        news = notable(HUGE, known, Live(stalled={0: share}))
        result += news.stalled.values()
        known = known.after(news)
    assert result == received


@given(figures, figures)
def test_what_is_decided_by_is_never_far_from_what_is(known: Live, now: Live) -> None:
    taken = known.after(notable(HUGE, known, now))
    assert all(
        abs(taken.free_memory[entry] - free) <= 32 * GIB // NOTABLE_MEMORY for entry, free in now.free_memory.items()
    )
    assert all(abs(taken.used_cpu[entry] - used) <= 8000 // NOTABLE_CPU for entry, used in now.used_cpu.items())
    assert taken.free_hugepages.items() >= now.free_hugepages.items()
    assert all(taken.stalled[entry] >= STALLED for entry, share in now.stalled.items() if share >= STALLED)
    assert all(taken.stalled[entry] < STALLED for entry, share in now.stalled.items() if share < STALLED / 2)


def test_the_enforcer_decides_by_what_the_kernel_told_it_and_shows_it(enforcer: Enforcer) -> None:
    """Real processes on the files of a Xeon whose NUMA node 0 becomes busy."""
    proc = idle_procfs(enforcer.folder)
    first, second = numa_cpus(enforcer)
    with ticking(proc, first), Runtime(enforcer.socket) as runtime:
        enforcer.start("--procfs", str(proc))
        runtime.wait_for_plugin(PATIENCE_S)
        until(lambda: enforcer.get("/readyz")[0] == 200, "the observer knows the hook")
        shown = f'numakin_enforcer_used_cpus{{numa_node="0"}} {len(first) * 0.9}'
        until(lambda: shown in enforcer.get("/metrics")[1], "the used CPU is told")
        text = enforcer.get("/metrics")[1]
        assert 'numakin_enforcer_used_cpus{numa_node="1"} 0.0' in text
        assert f'numakin_enforcer_free_hugepages_bytes{{numa_node="1",size="{GIB}"}} 1.7179869184e+10' in text
        assert 'numakin_enforcer_memory_stalled{numa_node="0"} 0.0' in text
        made = runtime.run_container(runtime.run_pod("a", annotations=GROUP), "app", cpu_request=2)
        assert cpus(runtime, made) <= second
