"""`doctor` and `release` run the enforcers' own programs in their pods."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lab.demo.cluster import OPT_IN
from lab.standins.patience import PATIENCE_S, until
from numakin.kubectl.commands import doctor
from numakin.kubectl.recordings.recording import read
from numakin.placement.traffic.graph import Flow
from numakin.placement.traffic.window import Window
from numakin.wire import report_pb2 as pb
from tests.extender.running import Enforcer, machine
from tests.numakin.kubectl.installed import NAMESPACE, NODE, Installed, add_pod, installed


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(tmp_path_factory.mktemp("installed")) as first:
        yield first


def findings(received) -> dict[tuple[str, str], list[tuple[str, str]]]:
    result: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in received.json["findings"]:
        result.setdefault((row["where"], row["topic"]), []).append((row["grade"], row["text"]))
    return result


def test_the_doctor_of_every_node_is_asked_with_its_enforcers_options(there):
    received = there.ask("doctor", "-o", "json")
    result = findings(received)
    assert ("good", "2 NUMA nodes with 80 CPUs each") in result[NODE, "NUMA"]
    assert result[NODE, "NRI"][0][0] == "good"
    assert there.started[-1][:3] == ["numakin-enforcer", "doctor", "--json"]
    assert f"--node-name={NODE}" in there.started[-1]


@pytest.fixture
def silent(there) -> Iterator[str]:
    """A second replica, which runs and shows no metrics."""
    name = "numakin-extender-1"
    add_pod(there.api, "numakin-extender", 1, "extender", [], [{"name": "web", "containerPort": 8083}])
    yield name
    there.api.delete("v1", "pods", name, NAMESPACE, grace_s=0)


def test_an_extender_that_was_not_asked_yet_may_have_begun_just_now(there):
    grade, text = findings(there.ask("doctor", "-o", "json"))["cluster", "scheduler"][0]
    assert grade == "note"
    assert text.startswith("kube-scheduler has not asked for scores since the replicas began")
    assert "with --v=5 its log says why" in text


@pytest.mark.usefixtures("silent")
def test_whom_kube_scheduler_asks_is_not_known_while_a_replica_shows_no_metrics(there):
    assert findings(there.ask("doctor", "-o", "json"))["cluster", "scheduler"][0] == (
        "note",
        "whether kube-scheduler asks is not known: no metrics are shown by numakin-extender-1",
    )


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    "page", ["<html><body>log in</body></html>", "", "up 1\n"], ids=["a page", "nothing", "others"]
)
def test_what_answers_without_an_extenders_metrics_shows_none(there, page):
    """As a proxy with a login before the pod, or another program at its port."""
    with answering(page) as url:
        there.api.behind.backends["pods", NAMESPACE, "numakin-extender-1", "8083"] = url
        received = there.ask("doctor", "-o", "json")
        del there.api.behind.backends["pods", NAMESPACE, "numakin-extender-1", "8083"]
    assert findings(received)["cluster", "scheduler"][0] == (
        "note",
        "whether kube-scheduler asks is not known: no metrics are shown by numakin-extender-1",
    )


@contextmanager
def answering(page: str) -> Iterator[str]:
    """An HTTP server, by its URL, that answers everything with this page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_arguments: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_an_extender_that_is_asked_is_well(there):
    from lab.standins.scheduler.extender_client import ExtenderClient  # noqa: PLC0415

    client = ExtenderClient(there.cluster.extender, PATIENCE_S)
    client.prioritize(there.api.create_pod("asked", annotations=OPT_IN), [NODE])
    client.close()
    grade, text = findings(there.ask("doctor", "-o", "json"))["cluster", "scheduler"][0]
    assert grade == "good"
    assert text.startswith("kube-scheduler has asked 1 times")


@pytest.mark.usefixtures("silent")
def test_one_replica_that_is_asked_is_enough(there):
    grade, text = findings(there.ask("doctor", "-o", "json"))["cluster", "scheduler"][0]
    assert grade == "good"
    assert text.startswith("kube-scheduler has asked at least 1 times")


def test_a_kube_scheduler_without_a_configuration_is_found(there):
    command = ["kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf"]
    container = {"name": "kube-scheduler", "image": "kube-scheduler:1", "command": command}
    there.api.create_pod(
        "kube-scheduler-a", "kube-system", labels={"component": "kube-scheduler"}, containers=[container]
    )
    try:
        received = there.ask("doctor", "-o", "json")
        bad = [text for grade, text in findings(received)["cluster", "scheduler"] if grade == "bad"]
        assert (received.code, len(bad)) == (1, 1)
        assert bad[0].startswith("kube-scheduler-a: it runs without --config")
    finally:
        there.api.delete("v1", "pods", "kube-scheduler-a", "kube-system", grace_s=0)


def test_enforcers_of_another_version_are_named(there):
    enforcer = Enforcer(there.cluster.reports, "older", format=0, version="0.0.9")
    enforcer.report(machine())
    try:
        grade, text = findings(there.ask("doctor", "-o", "json"))["cluster", "versions"][0]
        assert grade == "note"
        assert text.startswith("the enforcers of older (version 0.0.9) speak another report format")
    finally:
        enforcer.close()


def test_a_node_where_another_owner_has_the_cpusets_is_named(there):
    enforcer = Enforcer(there.cluster.reports, "confined")
    enforcer.report(machine(), yielded=pb.Yielded(containers=4, members=5))
    try:
        ((grade, text),) = findings(there.ask("doctor", "-o", "json"))["confined", "cpusets"]
        assert grade == "bad"
        assert text.startswith("another owner sets the cpusets of 4 of 5 containers that opted in: it scores 0")
    finally:
        enforcer.close()


def test_a_node_whose_enforcer_is_not_registered_with_its_runtime_is_named(there):
    enforcer = Enforcer(there.cluster.reports, "apart")
    enforcer.report(machine(), registered=False)
    try:
        ((grade, text),) = findings(there.ask("doctor", "-o", "json"))["apart", "report"]
        assert grade == "bad"
        assert text.startswith("its enforcer is not registered with the container runtime")
    finally:
        enforcer.close()


def test_the_worst_is_said_first_and_each_with_what_to_run(there):
    enforcer = Enforcer(there.cluster.reports, "confined")
    enforcer.report(machine(), yielded=pb.Yielded(containers=4, members=5))
    try:
        lines = there.ask("doctor").lines
    finally:
        enforcer.close()
    grades = [line.split()[0] for line in lines if line.startswith(("bad ", "note ", "good "))]
    assert grades == sorted(grades), "bad, then note"
    at = next(at for at, line in enumerate(lines) if "another owner sets the cpusets" in line)
    assert lines[at].startswith("bad  confined  cpusets: ")
    enforcers = "kubectl -n numakin get pods -o wide -l app.kubernetes.io/name=numakin-enforcer"
    assert lines[at + 1] == f"       $ {enforcers}", "no enforcer's pod is on that node here"
    assert lines[-1].endswith("good (-o wide shows the good ones too)")


def test_what_an_enforcer_names_to_run_is_run_in_its_pod_and_all_else_on_its_node(there):
    found = [
        {"topic": "enforcer", "grade": "bad", "text": "it was released", "command": "numakin-enforcer resume"},
        {"topic": "NRI", "grade": "bad", "text": "nobody listens", "command": "containerd config dump"},
        {"topic": "NUMA", "grade": "note", "text": "of a version that names none"},
    ]
    program = there.api.behind.programs.pop((NAMESPACE, "numakin-enforcer-0"))
    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = lambda words: subprocess.CompletedProcess(
        words, 1, json.dumps(found).encode(), b""
    )
    try:
        lines = there.ask("doctor").lines
    finally:
        there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = program
    below = {line: lines[at + 1] for at, line in enumerate(lines[:-1])}
    released = f"       $ kubectl -n {NAMESPACE} exec numakin-enforcer-0 -- numakin-enforcer resume"
    assert below[f"bad  {NODE}  enforcer: it was released"] == released
    assert below[f"bad  {NODE}  NRI: nobody listens"] == f"       on {NODE}: $ containerd config dump"
    assert not below[f"note {NODE}  NUMA: of a version that names none"].startswith(" ")


@pytest.mark.parametrize(("app", "topic"), [("numakin-extender", "extender"), ("numakin-enforcer", "enforcer")])
def test_a_pod_that_runs_and_is_not_ready_is_bad(there, app, topic):
    name, where = f"{app}-0", "cluster" if topic == "extender" else NODE
    there.api.set_phase(name, "Running", NAMESPACE, conditions=[{"type": "Ready", "status": "False"}])
    try:
        assert any(
            (grade, text.startswith(f"{name} is not ready")) == ("bad", True)
            for grade, text in findings(there.ask("doctor", "-o", "json"))[where, topic]
        )
    finally:
        there.api.set_phase(name, "Running", NAMESPACE, conditions=[{"type": "Ready", "status": "True"}])


def test_of_the_node_that_is_asked_about_and_of_no_other_is_told(there):
    enforcer = Enforcer(there.cluster.reports, "confined")
    enforcer.report(machine(), yielded=pb.Yielded(containers=4, members=5))
    try:
        where = {where for where, _ in findings(there.ask("doctor", "--node", NODE, "-o", "json"))}
        assert where == {"cluster", NODE}
    finally:
        enforcer.close()


def test_what_a_node_says_of_other_owners_itself_is_not_said_again(there):
    runtime = there.cluster.nodes[NODE].runtime
    sandbox = runtime.run_pod("theirs", "shop", "uid-theirs", OPT_IN, {})
    runtime.run_container(sandbox, "cart", cpu_request=1.0, memory_limit=1 << 30, cpus="0-3")
    try:
        (row,) = until(
            lambda: [row for row in told_of_owners(there) if "1 of 1 containers that opted in" in row[1]], "it is told"
        )
        assert row[0] == "bad"
        assert row in told_of_owners(there)
        assert len(told_of_owners(there)) == 1
    finally:
        runtime.remove_pod(sandbox)


def told_of_owners(there) -> list[tuple[str, str]]:
    return findings(there.ask("doctor", "-o", "json"))[NODE, "cpusets"]


def test_what_nodes_find_alike_is_said_once():
    alike = [doctor.Finding(f"node-{number}", "cgroups", "note", "cgroup v1") for number in range(9)]
    first, last = doctor._rendered(alike, wide=False)
    assert str(first) == "note node-0, node-1, node-2, node-3, node-4 and 4 more  cgroups: cgroup v1"
    assert last == "0 bad, 9 to read, 0 good"


def test_a_node_without_an_enforcer_is_named(there):
    there.api.create_node("bare")
    try:
        assert "no enforcer has reported from bare" in there.ask("doctor").out
    finally:
        there.api.delete("v1", "nodes", "bare")


def test_what_one_node_fails_by_costs_no_other(there):
    program = there.api.behind.programs.pop((NAMESPACE, "numakin-enforcer-0"))
    try:
        received = there.ask("doctor", "-o", "json")
        ((grade, text),) = findings(received)[NODE, "doctor"]
        assert (received.code, grade) == (1, "bad")
        assert "numakin-enforcer-0 on node-1: no program can be started there" in text
    finally:
        there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = program


def test_a_doctor_that_breaks_is_told_with_its_last_word(there):
    program = there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"]
    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = lambda words: subprocess.CompletedProcess(
        words, 127, b"", b"exec: numakin-enforcer: not found\n"
    )
    try:
        ((_, text),) = findings(there.ask("doctor", "-o", "json"))[NODE, "doctor"]
        assert text == "its doctor failed (127): exec: numakin-enforcer: not found"
    finally:
        there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = program


def test_without_the_right_to_exec_that_is_said_node_by_node(there):
    rules = [
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["services/proxy", "pods/proxy"], "verbs": ["get"]},
    ]
    received = there.ask("doctor", token=there.api.grant("viewer", rules))
    assert received.code == 1
    assert 'User "viewer" cannot get resource "pods/exec"' in " ".join(received.out.split())


def test_who_has_rights_in_numakins_namespace_alone_is_told_all_that_can_be_known_from_there(there):
    """And of the rest that it is not known, and what it takes: it was all that was said of the extender's reports."""
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/exec", "pods/proxy"], "verbs": ["get", "list", "create"]},
        {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get"]},
    ]
    token = there.api.grant("admin-of-numakin", rules, NAMESPACE)
    enforcer = Enforcer(there.cluster.reports, "apart")
    enforcer.report(machine(), registered=False)
    try:
        found = findings(there.ask("doctor", "-o", "json", token=token))
    finally:
        enforcer.close()
    assert found["apart", "report"][0][0] == "bad"
    unknown = [
        text for grade, text in found["cluster", "extender"] + found["cluster", "scheduler"] if "not known" in text
    ]
    assert [text.partition(" is not known: the API server does not allow this: ")[0] for text in unknown] == [
        "whether some nodes have no enforcer", "whether kube-scheduler runs with --config",
    ]  # fmt: skip
    assert {grade for where in found if where[0] == "cluster" for grade, _ in found[where]} <= {"note", "good"}


def test_where_numakin_is_not_installed_its_namespace_is_asked_for(there):
    found = findings(there.ask("doctor", "--numakin-namespace", "elsewhere", "-o", "json"))
    ((grade, text),) = found["cluster", "extender"]
    assert grade == "bad"
    assert text.endswith(
        "in namespace elsewhere: is numakin installed there? name its namespace by --numakin-namespace"
    )


def test_a_node_that_is_none_costs_one_line(there):
    received = there.ask("doctor", "--node", "nowhere")
    assert (received.code, received.err) == (
        1,
        "kubectl numakin: no enforcer's pod is on node nowhere; they are on: node-1\n",
    )


def test_release_un_pins_every_container_and_resume_pins_again(there):
    runtime = there.cluster.nodes[NODE].runtime
    sandbox = runtime.run_pod("cart-0", "shop", "uid-1", OPT_IN, {})
    container = runtime.run_container(sandbox, "cart", cpu_request=1.0, memory_limit=1 << 30)
    until(lambda: runtime.containers[container.id].resources.cpu.cpus, "it is pinned")
    pinned = runtime.containers[container.id].resources.cpu.cpus

    received = there.ask("release", "--all", "--yes")
    assert received.code == 0, received.err
    assert "released 1 containers" in received.out
    assert runtime.containers[container.id].resources.cpu.cpus != pinned

    received = there.ask("release", "--node", NODE, "--resume")
    assert "containers are pinned again" in received.out
    until(lambda: runtime.containers[container.id].resources.cpu.cpus == pinned, "it is pinned again")


@pytest.mark.parametrize(("words", "why"), [
    ((), "name the nodes by --node, or take --all"),
    (("--all", "--node", NODE), "one of the two"),
    (("--all",), "nobody is there to be asked: give --yes"),
])  # fmt: skip
def test_nothing_is_released_by_mistake(there, words, why):
    received = there.ask("release", *words, stdin="")
    assert received.code == 2
    assert why in received.err


def test_a_node_whose_enforcer_does_not_answer_is_bad_news(there):
    program = there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"]
    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = lambda words: program([*words[:2], "--run-dir=/no"])
    try:
        received = there.ask("release", "--all", "--yes", "-o", "json")
        (row,) = received.json["nodes"]
        assert (received.code, row["done"]) == (1, False)
        assert "no enforcer answers at /no/hook.sock" in row["text"]
    finally:
        there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = program


@pytest.mark.parametrize("command", [("doctor",), ("release", "--all", "--yes")])
def test_what_needs_the_api_server_says_so_to_who_goes_past_it(there, command):
    received = there.ask(*command, "--extender", f"http://{there.cluster.extender}")
    assert received.code == 2
    assert "asks the API server: leave --extender out" in received.err


WINDOW = Window(10.0, (Flow("uid-a", "uid-b", "tcp", 1000, 10, by_server=True),)).to_json()


def recording_program(words, *, port: str = "--metrics=127.0.0.1:16862") -> subprocess.CompletedProcess[bytes]:
    """What `numakin-enforcer record` prints; where it gets it from is tested with the enforcer."""
    assert words == ["numakin-enforcer", "record", "/dev/stdout", "--seconds=2", port]
    return subprocess.CompletedProcess(words, 0, f"{WINDOW}\n/dev/stdout: 1 windows recorded\n".encode(), b"")


def test_a_recording_has_the_pods_the_machines_and_the_traffic_of_every_node(there, tmp_path):
    for name in ("a", "b"):
        there.api.create_pod(f"pod-{name}", "shop", annotations=OPT_IN, nodeName=NODE)
        there.api.set_phase(f"pod-{name}", "Running", "shop")
    there.api.create_pod("stranger", "shop")
    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = recording_program
    received = there.ask("record", str(tmp_path / "traffic"), "--seconds", "2")
    assert received.code == 0, received.err
    result = read(tmp_path / "traffic")
    assert {pod.name for pod in result.pods} >= {"pod-a", "pod-b"}
    assert "stranger" not in {pod.name for pod in result.pods}
    assert len(result.machines[NODE].numa_nodes) == 2
    assert [(node, window.flows[0].bytes) for node, window in result.windows] == [(NODE, 1000)]


def test_a_node_that_can_not_be_recorded_is_named_and_the_rest_is_written(there, tmp_path):
    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = lambda words: subprocess.CompletedProcess(
        words, 1, b"", b"numakin-enforcer: no enforcer answers at 127.0.0.1:16862\n"
    )
    received = there.ask("record", str(tmp_path / "traffic"), "--seconds", "2")
    assert received.code == 1
    assert received.err == "kubectl numakin: node-1: numakin-enforcer: no enforcer answers at 127.0.0.1:16862\n"
    assert "0 windows of 0 nodes" in received.out


def test_a_recording_is_never_written_over(there, tmp_path):
    (tmp_path / "traffic").write_text("dear")
    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = recording_program
    received = there.ask("record", str(tmp_path / "traffic"), "--seconds", "2")
    assert (received.code, "File exists" in received.err) == (2, True)
    assert (tmp_path / "traffic").read_text() == "dear"


def test_where_nothing_can_be_written_nobody_is_asked(there, tmp_path):
    before = len(there.started)
    received = there.ask("record", str(tmp_path / "nowhere" / "traffic"), "--seconds", "2")
    assert (received.code, received.err) == (
        2,
        f"kubectl numakin: {tmp_path}/nowhere/traffic: No such file or directory\n",
    )
    assert len(there.started) == before


def test_an_interrupt_ends_a_recording_at_once_and_leaves_no_file(there, tmp_path):
    asked, done = threading.Event(), threading.Event()

    def program(words) -> subprocess.CompletedProcess[bytes]:
        asked.set()
        done.wait(PATIENCE_S)
        return recording_program(words)

    there.api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = program
    # Whoever runs the tests in the background has the signal ignored, and its children inherit that.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "numakin.kubectl"]
    command += ["record", str(tmp_path / "traffic"), "--seconds", "2"]
    environment = os.environ | {"KUBECONFIG": str(there.api.kubeconfig(there.folder / "user", "admin-token"))}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert asked.wait(PATIENCE_S)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=PATIENCE_S / 2)
    finally:
        process.kill()
        done.set()
    assert (process.returncode, complaint) == (130, b"")
    assert list(tmp_path.iterdir()) == []
