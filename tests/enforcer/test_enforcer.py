"""The program itself, as real processes on a real unix socket, with a runtime at the other end that speaks NRI."""

import os
import signal
import socket

import pytest

from enforcer.local import control
from lab.standins.cri.cgroups import Cgroups
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.wire import local_pb2 as local
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus
from tests.trees import sysfs


def test_members_are_pinned_together_and_others_are_not_touched(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    members = [
        runtime.run_container(runtime.run_pod(f"m{n}", annotations=GROUP), "app", cpu_request=2) for n in range(3)
    ]
    plain = runtime.run_container(runtime.run_pod("plain"), "app", cpu_request=2)
    assert {str(cpus(runtime, member)) for member in members} == {str(numa_cpus(enforcer)[0])}
    assert runtime.containers[plain.id].resources.cpu.cpus == ""
    assert runtime.containers[plain.id].annotations == {}


def test_members_share_a_last_level_cache_where_the_operator_or_they_ask_for_it(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    enforcer.sysfs = sysfs("epyc-7763-nps1")
    enforcer.start("--policy-options", "span=cache")
    runtime.wait_for_plugin(PATIENCE_S)
    wide = GROUP | {"span.numakin.io": "numa"}
    members = [runtime.run_container(runtime.run_pod(f"m{n}", annotations=GROUP), "app", cpu_request=2) for n in "ab"]
    other = runtime.run_container(runtime.run_pod("other", annotations=wide), "app", cpu_request=2)
    assert [str(cpus(runtime, member)) for member in members] == ["0-7,128-135"] * 2
    assert cpus(runtime, other) == numa_cpus(enforcer)[0]
    reasons = {container["pod"]: container["reasons"] for container in enforcer.status()["containers"]}
    assert "cache CPUs 0-7,128-135: 100% of its kin in its home's caches are there" in reasons["default/mb"]


def test_exclusive_cpus_come_from_as_many_cores_as_can_be_where_the_operator_asks_for_it(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    enforcer.sysfs = sysfs("epyc-7763-nps1")
    enforcer.start("--policy-options", "distribute-cpus-across-cores")
    runtime.wait_for_plugin(PATIENCE_S)
    own = GROUP | {"cpus.numakin.io": "exclusive"}
    member = runtime.run_container(runtime.run_pod("m", annotations=own), "app", cpu_request=4)
    assert str(cpus(runtime, member)) == "0-3"


def test_it_says_what_is_pinned_where_and_why(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("m", "shop", annotations=GROUP), "app", cpu_request=2)
    (only,) = enforcer.status()["containers"]
    assert (only["pod"], only["numa_nodes"]) == ("shop/m", "0")
    assert any("no kin here" in reason for reason in only["reasons"])


def test_what_was_pinned_before_a_restart_is_still_shown(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("m", "shop", annotations=GROUP), "app", cpu_request=2)
    runtime.run_container(runtime.run_pod("plain", "shop"), "app", cpu_request=2)
    (before,) = enforcer.status()["containers"]
    enforcer.kill_hook()
    until(enforcer.joined, "it is registered again")
    (after,) = enforcer.status()["containers"]
    assert {**after, "reasons": before["reasons"]} == before
    assert after["reasons"] == ["taken over: it was there when the enforcer started"]


def test_the_hook_logs_what_it_decides_whether_or_not_an_observer_is_there(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    enforcer.run_dir.mkdir()
    enforcer.start_hook()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("m", "shop", annotations=GROUP), "app", cpu_request=2)
    assert "pod=shop/m container=app" in enforcer.said("container pinned")


def test_what_was_decided_before_the_observer_was_there_is_counted_too(enforcer: Enforcer, runtime: Runtime) -> None:
    """It takes longer to start than the hook."""
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    counted = 'numakin_enforcer_decisions_total{event="create"} 1.0'
    until(lambda: counted in enforcer.get("/metrics")[1], "the decision is not counted")


def test_a_runtime_that_comes_later_or_restarts_is_joined(enforcer: Enforcer) -> None:
    enforcer.start()
    for _ in range(2):
        with Runtime(enforcer.socket) as runtime:
            runtime.wait_for_plugin(PATIENCE_S)
            made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
            assert cpus(runtime, made)


def test_killed_and_started_again_it_pins_what_it_missed_and_leaves_the_rest(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    first = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    before = runtime.run_container(runtime.run_pod("before", annotations=GROUP), "app", cpu_request=2)
    first.kill()
    until(lambda: not runtime.plugins.names, "the plugin is gone with its supervisor")
    missed = runtime.run_container(runtime.run_pod("missed", annotations=GROUP), "app", cpu_request=2)
    assert not cpus(runtime, missed)
    pinned = cpus(runtime, before)
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: cpus(runtime, missed), "the missed container is pinned")
    assert cpus(runtime, missed) == cpus(runtime, before) == pinned


def test_a_container_that_is_being_created_while_the_enforcer_joins_is_pinned_all_the_same(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    """The runtime neither asks about it any more nor lists it yet."""

    def joins() -> None:
        enforcer.start()
        runtime.wait_for_plugin(PATIENCE_S)

    missed = runtime.create_container(
        runtime.run_pod("missed", annotations=GROUP), "app", cpu_request=2, meanwhile=joins
    )
    runtime.start_container(missed)
    after = runtime.run_container(runtime.run_pod("after", annotations=GROUP), "app", cpu_request=2)
    until(lambda: cpus(runtime, missed), "it is pinned")
    assert cpus(runtime, missed) == cpus(runtime, after)


def test_killed_at_any_moment_it_knows_its_own_work_and_gives_no_cpu_twice(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    """The first are pinned at Synchronize and carry no mark; each kill comes right after an answer."""
    own = GROUP | {"cpus.numakin.io": "exclusive"}
    early = runtime.run_container(runtime.run_pod("early", annotations=GROUP), "app", cpu_request=2)
    kept = [runtime.run_container(runtime.run_pod("first", annotations=own), "app", cpu_request=4)]
    enforcer.start()
    until(lambda: enforcer.joined() and cpus(runtime, kept[0]), "they are pinned")
    for number in range(4):
        pod = runtime.run_pod(f"own-{number}", annotations=own)
        kept.append(runtime.run_container(pod, "app", cpu_request=3))
        enforcer.kill_hook()
        if number % 2:
            runtime.stop_container(kept.pop(0))
        missed = runtime.run_container(runtime.run_pod(f"missed-{number}", annotations=own), "app", cpu_request=2)
        until(enforcer.joined, "it is back")
        until(lambda entry=missed: cpus(runtime, entry), "the missed one is pinned")
        kept.append(missed)
        taken = [cpus(runtime, entry) for entry in kept]
        everyones = set().union(*taken)
        asked = sum(entry.resources.cpu.shares.value for entry in kept) // 1024
        assert len(everyones) == sum(map(len, taken)) == asked, "no CPU is anybody's twice"
        assert everyones.isdisjoint(cpus(runtime, early))
        assert not enforcer.status()["counts"].get("yielded")


def test_the_room_of_a_pod_that_ends_after_the_runtimes_restart_is_free_again(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    """The runtime tells of its containers' end alone."""
    cgroups = Cgroups(enforcer.folder, "0-159", "0-1")
    enforcer.start("--procfs", str(cgroups.procfs))
    runtime.wait_for_plugin(PATIENCE_S)
    large = {"annotations": GROUP | {"cpus.numakin.io": "exclusive"}}
    first = runtime.run_pod("first", **large)
    (cgroups.root / first.cgroup_parent.lstrip("/")).mkdir(parents=True)
    taken = cpus(runtime, runtime.run_container(first, "app", cpu_request=70))
    runtime.stop()
    until(enforcer.parted, "the runtime is missed")
    runtime.start()
    until(enforcer.joined, "it is back")
    (cgroups.root / first.cgroup_parent.lstrip("/")).rmdir()
    runtime.remove_pod(first)
    again = runtime.run_container(runtime.run_pod("again", **large), "app", cpu_request=70)
    assert cpus(runtime, again) == taken


@pytest.mark.parametrize("victim", ["hook", "observer"])
def test_either_process_may_die_without_the_other(enforcer: Enforcer, runtime: Runtime, victim: str) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    survivor = next(name for name in ("hook", "observer") if name != victim)
    before = enforcer.children()
    os.kill(before[victim], signal.SIGKILL)
    until(lambda: enforcer.children().get(victim, before[victim]) != before[victim], f"a new {victim}")
    assert enforcer.children()[survivor] == before[survivor]
    if victim == "hook":
        runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready again")
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    assert cpus(runtime, made)


def test_ready_means_registered_with_the_runtime(enforcer: Enforcer) -> None:
    enforcer.start()
    until(lambda: enforcer.get("/readyz")[0] == 503, "not ready without a runtime")
    assert enforcer.get("/readyz")[1] == "not registered with the container runtime\n"
    assert enforcer.get("/healthz") == (200, "ok\n")
    assert "numakin_enforcer_runtime_confirmed_seconds_ago NaN" in enforcer.get("/metrics")[1]
    with Runtime(enforcer.socket) as runtime:
        runtime.wait_for_plugin(PATIENCE_S)
        until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
        assert "numakin_enforcer_registered 1.0" in enforcer.get("/metrics")[1]
        until(lambda: "runtime, confirmed " in enforcer.get("/readyz")[1], "the age of the proof is told")
        assert "numakin_enforcer_runtime_confirmed_seconds_ago NaN" not in enforcer.get("/metrics")[1]
        assert enforcer.status()["confirmed_seconds_ago"] is not None
    until(lambda: enforcer.get("/readyz")[0] == 503, "not ready any more")


def test_told_of_containers_that_the_runtime_kept_from_it_it_registers_anew(
    enforcer: Enforcer, runtime: Runtime
) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(enforcer.run_dir / "hook.sock"))
        sock.sendall(control.framed(local.ToHook(untold=local.Untold(containers=["a", "b"]))))
        until(lambda: sum("is synchronized" in note for note in runtime.plugins.notes) == 2, "registered again")
    made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
    assert cpus(runtime, made)


def test_a_second_enforcer_says_so_and_leaves(enforcer: Enforcer, runtime: Runtime) -> None:
    first = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    second = enforcer.start()
    assert second.wait(PATIENCE_S) == 1
    assert f"another numakin-enforcer (pid {first.pid}) runs on this node" in enforcer.log.read_text()
    assert first.poll() is None


def test_it_ends_cleanly_on_sigterm(enforcer: Enforcer, runtime: Runtime) -> None:
    process = enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    output = enforcer.log.read_text()
    assert "left the runtime" in output
    assert "Traceback" not in output
    assert not (enforcer.run_dir / "hook.sock").exists()


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--reserved-cpus", "900"), 1, "reserved-cpus: CPUs 900 are not online; online: 0-159"),
        (("--window-s", "1000"), 2, "window-s: 1000.0 is not allowed; allowed: 1 to 600 seconds"),
        (("--config", "/nowhere"), 2, "config file /nowhere: "),
        (("--sysfs", "/nowhere"), 1, "/nowhere"),
    ],
)
def test_a_bad_option_is_said_and_ends_it(
    enforcer: Enforcer, options: tuple[str, ...], status: int, message: str
) -> None:
    assert enforcer.start(*options).wait(PATIENCE_S) == status
    assert message in enforcer.log.read_text()
