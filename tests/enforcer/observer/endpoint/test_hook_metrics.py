"""What the README calls counted is a metric, and moves."""

import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from enforcer.hook.decision_records import COUNTED
from enforcer.local import control
from enforcer.observer.endpoint.hook_metrics import FAMILIES, HookCounts
from enforcer.observer.endpoint.pages import application
from enforcer.observer.planning_thread import Locality
from enforcer.observer.process import Observer
from enforcer.observer.traffic_loop import TrafficView
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb
from tests.enforcer.running import GROUP, Enforcer
from tests.extender.running import running
from tests.metrics import value

ENFORCER = Path(__file__).parents[4] / "enforcer"
NOT_TOLD = {"unpromised"}
"""Nothing was nominated, so that nothing came of it."""


def page_of(counts: local.Counts) -> str:
    registry, collector = CollectorRegistry(), HookCounts()
    registry.register(collector)
    collector.received(counts)
    return generate_latest(registry).decode()


def test_whatever_the_hook_counts_is_a_metric() -> None:
    counted = {
        name for path in ENFORCER.rglob("*.py") for name in re.findall(r'counts\["([^"]+)"', path.read_text())
    } | {"left open", "kept", "declined", "late", *COUNTED.values()}
    received = {output for family in FAMILIES for output in family.values}
    assert received == counted - NOT_TOLD
    for number, output in enumerate(sorted(received), start=3):
        assert f" {number}.0\n" in page_of(local.Counts(outcomes={output: number})), output


def test_what_happened_so_far_is_told_by_event() -> None:
    page = page_of(
        local.Counts(
            events={"CreateContainer": 5}, handler_faults={"StopContainer": 2}, late_answers=1, connections=3, losses=2
        )
    )
    assert value(page, "numakin_enforcer_runtime_events_total", event="CreateContainer") == 5
    assert value(page, "numakin_enforcer_handler_faults_total", event="StopContainer") == 2
    assert value(page, "numakin_enforcer_late_answers_total") == 1
    assert value(page, "numakin_enforcer_runtime_connections_total") == 3
    assert value(page, "numakin_enforcer_runtime_losses_total") == 2


def test_durations_are_histograms_in_seconds() -> None:
    took = local.Durations(counts=[1, 0, 2] + [0] * 9 + [1], seconds=3.5)
    page = page_of(local.Counts(handlers={"CreateContainer": took}, answers={"StopContainer": took}, decisions=took))
    for name, labels in (
        ("handler", {"event": "CreateContainer"}),
        ("answer", {"event": "StopContainer"}),
        ("decision", {}),
    ):
        family = f"numakin_enforcer_{name}_seconds"
        for bound, count in (("0.0001", 1), ("0.0005", 3), ("2.0", 3), ("+Inf", 4)):
            assert value(page, f"{family}_bucket", le=bound, **labels) == count
        assert (value(page, f"{family}_count", **labels), value(page, f"{family}_sum", **labels)) == (4, 3.5)


class Metrics:
    """Of a running enforcer, and what has been counted since the test began."""

    def __init__(self, enforcer: Enforcer) -> None:
        self._enforcer = enforcer
        self._before = self._page()

    def reach(self, number: float, name: str, **labels: str) -> None:
        until(lambda: value(self._page(), name, **labels) == number, f"{name} {labels} is {number}")

    def rise(self, by: float, name: str, **labels: str) -> None:
        def risen() -> float:
            return value(self._page(), name, **labels) - value(self._before, name, **labels)

        until(lambda: risen() == by, f"{name} {labels} rises by {by}")

    def _page(self) -> str:
        return until(lambda: self._enforcer.get("/metrics"), "the metrics")[1]


def started(enforcer: Enforcer, runtime: Runtime) -> Metrics:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    made = Metrics(enforcer)
    made.reach(1, "numakin_enforcer_registered")
    return made


class Site(NamedTuple):
    """An enforcer with a runtime, which these tests share: starting both takes longer than what they do."""

    enforcer: Enforcer
    runtime: Runtime


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        enforcer = Enforcer(Path(folder))
        with Runtime(enforcer.socket) as runtime:
            started(enforcer, runtime)
            yield Site(enforcer, runtime)
            enforcer.close()


@pytest.fixture
def runtime(site: Site) -> Iterator[Runtime]:
    """Without pods at first."""
    yield site.runtime
    for pod in list(site.runtime.pods.values()):
        site.runtime.stop_pod(pod)
        site.runtime.remove_pod(pod)


@pytest.fixture
def metrics(site: Site, runtime: Runtime) -> Metrics:
    made = Metrics(site.enforcer)
    for gauge in ("members", "foreign_containers"):
        made.reach(0, f"numakin_enforcer_{gauge}")
    made.reach(1, "numakin_enforcer_registered")
    return Metrics(site.enforcer)


def test_members_alone_are_members(metrics: Metrics, runtime: Runtime) -> None:
    runtime.run_container(runtime.run_pod("web", annotations=GROUP), "app", cpu_request=2)
    bystander = runtime.run_container(runtime.run_pod("other"), "app", cpu_request=2)
    runtime.update_container(bystander, nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7")))
    metrics.rise(1, "numakin_enforcer_placements_total", result="pinned")
    metrics.reach(1, "numakin_enforcer_members")


def test_each_event_and_decision_is_timed(metrics: Metrics, runtime: Runtime) -> None:
    runtime.run_container(runtime.run_pod("web", annotations=GROUP), "app", cpu_request=2)
    metrics.rise(1, "numakin_enforcer_decision_seconds_count")
    metrics.rise(1, "numakin_enforcer_handler_seconds_count", event="CreateContainer")
    metrics.rise(1, "numakin_enforcer_answer_seconds_count", event="CreateContainer")


def test_a_bad_annotation_is_counted(metrics: Metrics, runtime: Runtime) -> None:
    annotations = {**GROUP, "policy.numakin.io": "magic", "sise.numakin.io": "3"}
    runtime.run_container(runtime.run_pod("web", annotations=annotations), "app", cpu_request=2)
    metrics.rise(2, "numakin_enforcer_bad_annotations_total")


def test_a_cpuset_of_somebody_else_is_counted(metrics: Metrics, runtime: Runtime) -> None:
    made = runtime.run_container(runtime.run_pod("web", annotations=GROUP), "app", cpu_request=2)
    metrics.reach(1, "numakin_enforcer_members")
    runtime.update_container(made, nri.LinuxResources(cpu=nri.LinuxCPU(cpus="4-7")))
    metrics.rise(1, "numakin_enforcer_placements_total", result="yielded")
    metrics.reach(1, "numakin_enforcer_foreign_containers")
    metrics.reach(0, "numakin_enforcer_members")


def test_a_resize_is_counted(metrics: Metrics, runtime: Runtime) -> None:
    made = runtime.run_container(runtime.run_pod("web", annotations=GROUP), "app", cpu_request=2)
    runtime.update_container(made, nri.LinuxResources(cpu=nri.LinuxCPU(shares=nri.OptionalUInt64(value=4096))))
    metrics.rise(1, "numakin_enforcer_resizes_total")


def test_the_runtimes_restart_is_counted(metrics: Metrics, runtime: Runtime) -> None:
    runtime.stop()
    metrics.rise(1, "numakin_enforcer_runtime_losses_total")
    metrics.reach(0, "numakin_enforcer_registered")
    runtime.start()
    metrics.rise(1, "numakin_enforcer_runtime_connections_total")
    metrics.reach(1, "numakin_enforcer_registered")
    metrics.rise(1, "numakin_enforcer_answer_seconds_count", event="Synchronize")


def test_a_hook_that_died_is_counted(metrics: Metrics, site: Site) -> None:
    site.enforcer.kill_hook()
    metrics.rise(1, "numakin_enforcer_hook_starts_total")
    metrics.reach(1, "numakin_enforcer_runtime_connections_total")  # its own counts begin anew


def test_what_could_not_be_written_down_is_counted(metrics: Metrics, site: Site, runtime: Runtime) -> None:
    written = site.enforcer.run_dir / "allocations.json"
    written.unlink(missing_ok=True)
    written.mkdir()
    (written / "full").touch()
    runtime.run_container(runtime.run_pod("web", annotations=GROUP), "app", cpu_request=2)
    metrics.rise(1, "numakin_enforcer_allocations_unwritten_total")
    shutil.rmtree(written)


def nomination(enforcer: Enforcer, pod: str, numa_nodes: str) -> None:
    """As the observer hands it on."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(enforcer.run_dir / "hook.sock"))
        expect = pb.Expect(pod=pod, namespace="default", name="web", numa_nodes=numa_nodes)
        sock.sendall(
            control.framed(local.ToHook(who=local.Who(role="observer"))) + control.framed(local.ToHook(expect=expect))
        )
        assert sock.recv(1)


@pytest.mark.parametrize(("when", "outcome"), [("before", "kept"), ("after", "late")])
def test_a_nomination_is_counted(metrics: Metrics, site: Site, runtime: Runtime, when: str, outcome: str) -> None:
    pod = runtime.run_pod("web", annotations=GROUP)
    if when == "before":
        nomination(site.enforcer, pod.uid, "1")
    runtime.run_container(pod, "app", cpu_request=2)
    if when == "after":
        metrics.reach(1, "numakin_enforcer_members")
        nomination(site.enforcer, pod.uid, "1")
    metrics.rise(1, "numakin_predictions_total", outcome=outcome)
    metrics.rise(1, "numakin_predictions_total")


def test_an_extender_that_died_is_seen(enforcer: Enforcer, tmp_path: Path) -> None:
    with running(tmp_path) as extender, Runtime(enforcer.socket):
        enforcer.start("--extender", extender.grpc_address)
        seen = Metrics(enforcer)
        seen.reach(1, "numakin_enforcer_streaming")
        extender.kill()
        seen.reach(0, "numakin_enforcer_streaming")


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    made = Observer(tmp_path)
    application(made)
    return made


def shown(observer: Observer, name: str, **labels: str) -> float:
    return value(generate_latest(observer.counters.registry).decode(), name, **labels)


def test_what_the_hook_tells_is_shown(observer: Observer) -> None:
    outcomes = {"failed": 1, "moved": 2, "move declined": 3, "move taken back": 4, "memory opened": 5}
    observer._received(local.FromHook(counts=local.Counts(outcomes=outcomes)))
    assert shown(observer, "numakin_enforcer_faults_total") == 1
    assert [
        shown(observer, "numakin_enforcer_moves_total", result=name) for name in ("made", "declined", "taken_back")
    ] == [2, 3, 4]
    assert shown(observer, "numakin_enforcer_memory_opened_total") == 5


def test_whether_the_kernel_keeps_pressure_is_shown(observer: Observer) -> None:
    assert shown(observer, "numakin_enforcer_pressure_known") == 0
    observer._received(local.FromHook(report=pb.Report(generation=7, stalled={0: 0.0})))
    assert shown(observer, "numakin_enforcer_pressure_known") == 1
    assert shown(observer, "numakin_enforcer_occupancy_changes_total") == 7


def test_what_the_observer_saw_of_traffic_is_shown(observer: Observer) -> None:
    observer.watching = Seen()
    assert shown(observer, "numakin_enforcer_traffic_unattributed_bytes_total") == 5
    assert shown(observer, "numakin_enforcer_traffic_local_ratio") == 0.5
    assert shown(observer, "numakin_enforcer_traffic_local_planned_ratio") == 0.75
    assert shown(observer, "numakin_enforcer_traffic_lost_bytes_total") == 6


class Seen:
    """As `Watching` shows what it sees."""

    locality = Locality(0.5, 0.75)
    view = TrafficView(unattributed_bytes=5, lost_bytes=6)
