"""Recorded traffic, replayed into the real program: what it teaches, and how people see it."""

import json
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from enforcer.cli.top import Tape
from enforcer.observer.endpoint import pages
from enforcer.observer.endpoint.attachment import Attachment
from enforcer.observer.endpoint.counters import Counters
from enforcer.observer.endpoint.pages import application
from enforcer.observer.traffic_loop import TrafficLoop, TrafficView
from enforcer.observer.windows import recorded
from enforcer.report.mirror import Mirror
from enforcer.settings.config import Config
from lab.standins.machines import MACHINES
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.placement.traffic.graph import Flow, TrafficTally
from numakin.placement.traffic.window import BadRecording, Window
from tests import supervised
from tests.enforcer.command import command
from tests.enforcer.observer.endpoint.served import served
from tests.enforcer.observer.outlets import NOWHERE
from tests.enforcer.running import Enforcer, cpus
from tests.trees import sysfs

AUTO = {"group.numakin.io": "auto"}
WEB = {"pod-template-hash": "6d4cf"}


@pytest.fixture
def recording(enforcer: Enforcer) -> Path:
    """web and db talk."""
    flows = (Flow("uid-web", "uid-db", "tcp", 50_000, 500), Flow("uid-db", "uid-web", "tcp", 90_000, 500))
    file = enforcer.folder / "recording"
    file.write_text("".join(Window(1.0, flows, unattributed_bytes=17).to_json() + "\n" for _ in range(3)))
    return file


@pytest.fixture
def runtime(enforcer: Enforcer, recording: Path) -> Iterator[Runtime]:
    with Runtime(enforcer.socket) as made:
        enforcer.start("--replay", str(recording), "--window-s", "1")
        made.wait_for_plugin(PATIENCE_S)
        yield made


def run(runtime: Runtime, name: str, replica: str = ""):
    pod = runtime.run_pod(f"{name}-6d4cf-x2x7{replica}", "ns", f"uid-{name}{replica}", AUTO, WEB)
    return runtime.run_container(pod, "app", cpu_request=2)


def test_a_new_replica_is_placed_with_those_that_its_siblings_talk_to(enforcer: Enforcer, runtime: Runtime) -> None:
    web, db = run(runtime, "web"), run(runtime, "db")
    assert cpus(runtime, web) != cpus(runtime, db), "strangers go where it is emptiest"
    until(lambda: traffic(enforcer)["edges"], "the traffic is learned")
    assert cpus(runtime, run(runtime, "db", "2")) == cpus(runtime, web)


class TestRunningMembers:
    """Two that talk and were started apart."""

    @pytest.fixture
    def version(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest.fixture
    def runtime(self, enforcer: Enforcer, recording: Path, version: str) -> Iterator[Runtime]:
        with Runtime(enforcer.socket, nri_version=version) as made:
            enforcer.start("--replay", str(recording), "--window-s", "1", "--log-level", "warning")
            made.wait_for_plugin(PATIENCE_S)
            yield made

    @pytest.mark.parametrize("version", ["0.12.1"], indirect=True)
    def test_they_are_brought_together(self, enforcer: Enforcer, runtime: Runtime) -> None:
        web, db = run(runtime, "web"), run(runtime, "db")
        assert cpus(runtime, web) != cpus(runtime, db)
        until(lambda: cpus(runtime, web) == cpus(runtime, db), "one of them is moved")
        until(lambda: enforcer.status()["counts"].get("moved") == 1, "people can see it")

    @pytest.mark.parametrize("version", ["0.8.0"], indirect=True)
    def test_on_a_runtime_that_may_lock_up_they_are_when_the_next_member_comes(
        self, enforcer: Enforcer, runtime: Runtime
    ) -> None:
        web, db, number = run(runtime, "web"), run(runtime, "db"), count()

        def together() -> bool:
            runtime.remove_pod(run(runtime, "other", str(next(number))).pod)
            return cpus(runtime, web) == cpus(runtime, db)

        until(together, "one of them is moved")
        assert enforcer.status()["counts"]["moved"] == 1


def test_those_that_were_started_in_two_caches_of_a_numa_node_are_brought_into_one(
    enforcer: Enforcer, recording: Path
) -> None:
    """Both are on the emptier NUMA node. It takes the six windows, of a second at the least, that members rest."""
    enforcer.sysfs = sysfs("epyc-7742-nps1")
    more = ("--replay", str(recording), "--window-s", "1", "--log-level", "warning", "--policy-options", "span=cache")
    with Runtime(enforcer.socket, nri_version="0.12.1") as runtime:
        enforcer.start(*more)
        runtime.wait_for_plugin(PATIENCE_S)
        filler = runtime.run_pod("filler", "ns", "uid-filler", AUTO)
        runtime.run_container(filler, "app", cpu_request=100)
        web, db = run(runtime, "web"), run(runtime, "db")
        apart = cpus(runtime, web), cpus(runtime, db)
        assert len(set(apart)) == 2
        until(lambda: cpus(runtime, web) == cpus(runtime, db), "one of them is moved")
        assert cpus(runtime, web) in apart
        until(lambda: enforcer.status()["counts"].get("moved") == 1, "people can see it")


def traffic(enforcer: Enforcer) -> dict:
    status, text = enforcer.get("/api/v1/traffic")
    return json.loads(text) if status == 200 else {"edges": []}


def test_top_shows_who_talks_to_whom(enforcer: Enforcer, runtime: Runtime) -> None:
    run(runtime, "web")
    run(runtime, "db")
    until(lambda: traffic(enforcer)["edges"], "the traffic is learned")
    shown = command("top", "--metrics", enforcer.metrics)
    assert "ns/web-6d4cf-x2x7" in shown.stdout
    assert "ns/db-6d4cf-x2x7" in shown.stdout
    as_json = json.loads(command("top", "--json", "--metrics", enforcer.metrics).stdout)
    assert as_json["collector"] == "replay"
    assert as_json["unattributed_bytes"] >= 17
    assert {edge["kind"] for edge in as_json["edges"]} == {"tcp"}


def test_status_says_what_is_seen_and_learned(enforcer: Enforcer, runtime: Runtime) -> None:
    run(runtime, "web")
    run(runtime, "db")
    seen = "traffic is seen by replay: 2 edges, renewed "
    until(lambda: enforcer.status()["observer"]["doing"].startswith(seen), "the observer says so")
    assert seen in command("status", "--run-dir", str(enforcer.run_dir)).stdout


class TestRecording:
    @pytest.fixture
    def recording(self, recording: Path) -> Path:
        """They go on talking while they are recorded."""
        recording.write_text(recording.read_text() * 100)
        return recording

    def test_what_is_seen_can_be_replayed(self, enforcer: Enforcer, runtime: Runtime) -> None:
        run(runtime, "web")
        until(lambda: traffic(enforcer)["edges"], "the traffic is learned")
        file = enforcer.folder / "again"
        output = command("record", str(file), "--seconds", "1", "--metrics", enforcer.metrics)
        assert output.returncode == 0, output.stderr
        assert any(window.flows for window in recorded(file))


def test_top_says_through_whom_nobody_is_seen() -> None:
    """Also of a proxy that has not opted in."""
    halves = [("web", "proxy", 1), ("proxy", "db", 1), ("cart", "proxy", 3), ("proxy", "cache", 3)]
    asked = [Flow(f"uid-{entry}", f"uid-{other}", "tcp", 100 * much, 10) for entry, other, much in halves]
    answered = [Flow(f"uid-{other}", f"uid-{entry}", "tcp", 2000 * much, 10) for entry, other, much in halves]
    tally = TrafficTally(1.0)
    tally.add(asked + answered, 0.0)
    view = TrafficView("replay", graph=tally.graph(0.0), names={"uid-proxy": "mesh/proxy-x2x7"})
    assert pages.traffic(view)["relays"] == ["mesh/proxy-x2x7"]


def test_a_recording_goes_on_when_the_observer_was_started_again(enforcer: Enforcer, runtime: Runtime) -> None:
    """Whose windows count from 1 again."""
    run(runtime, "web")
    until(lambda: traffic(enforcer)["edges"], "the traffic is learned")
    tape = Tape(enforcer.metrics)
    until(lambda: tape.newer() and tape.windows >= 3, "some windows")
    os.kill(enforcer.children()["observer"], signal.SIGKILL)
    before = tape.windows
    until(lambda: tape.newer() and tape.windows > before, "a window of the new observer")
    assert tape.windows - before == tape.last, "from its first"


def test_without_an_enforcer_top_says_so() -> None:
    output = command("top", "--metrics", "127.0.0.1:1")
    assert output.returncode == 1
    assert output.stderr.startswith("numakin-enforcer: no enforcer answers at 127.0.0.1:1: ")


def test_a_window_survives_its_way_through_a_file() -> None:
    window = Window(10.0, (Flow("a", "b", "udp", 1, 2),), 10.0, 3, 4)
    assert Window.from_json(window.to_json()) == window


@pytest.mark.parametrize("line", ["", "{}", "[]", '{"seconds": "x"}', '{"seconds": 1, "flows": [["a"]]}', "\0"])
def test_a_broken_recording_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "recording"
    file.write_text(Window(1.0).to_json() + "\n" + line + "\n")
    with pytest.raises(BadRecording, match="line 2: not a recorded window"):
        list(recorded(file))


def test_metrics_say_which_way_traffic_is_seen_and_why_the_better_ones_are_not(enforcer: Enforcer) -> None:
    traffic = TrafficLoop(Config(), MACHINES["xeon-8380"].machine, NOWHERE, supervised.threads())
    traffic.view = TrafficView(
        "inet_diag", (("cgroup_skb", "cgroup v2 is not mounted"),), unseen=(("in the host's network", 3),)
    )

    class Health:
        mirror, counters, ready, streaming, skewed = Mirror(), Counters(), (True, ""), 0, 0
        threads = supervised.threads()
        attachment, census, memory, cpu_use = Attachment(), None, None, None
        watching = traffic

    with served(enforcer, application(Health)):
        until(lambda: enforcer.get("/metrics")[0] == 200, "the port is served")
        _, text = enforcer.get("/metrics")
    assert 'numakin_enforcer_collector{name="inet_diag"} 1.0' in text
    assert 'numakin_enforcer_collector_refused{name="cgroup_skb",reason="cgroup v2 is not mounted"} 1.0' in text
    assert 'numakin_enforcer_traffic_unseen_containers{reason="in the host\'s network"} 3.0' in text
    assert pages.traffic(traffic.view)["unseen"] == [{"reason": "in the host's network", "containers": 3}]


class TestDoctor:
    def test_it_says_what_will_not_work_and_ends_with_1(self, enforcer: Enforcer) -> None:
        output = command("doctor", "--json", "--nri-socket", str(enforcer.socket), "--sysfs", str(enforcer.sysfs))
        result = {(load["topic"], load["grade"]): load["text"] for load in json.loads(output.stdout)}
        assert output.returncode == 1
        assert result["NRI", "bad"].startswith(f"no socket at {enforcer.socket}: switch NRI on")
        assert result["NUMA", "good"] == "2 NUMA nodes with 80 CPUs each"

    def test_a_runtime_that_listens_is_found(self, enforcer: Enforcer) -> None:
        with Runtime(enforcer.socket):
            output = command("doctor", "--nri-socket", str(enforcer.socket))
        assert f"the container runtime listens at {enforcer.socket}" in output.stdout
