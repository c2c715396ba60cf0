"""Refused pods are looked at again off the report stream's loop, a bounded number of decisions at a time."""

import threading
from dataclasses import replace
from queue import Queue

from extender.cluster import Cluster
from extender.refused_pod_checks import RefusedPodChecks
from extender.reports.session import ReportSession, SessionCallbacks
from extender.scoring.predict import Wanted
from extender.scoring.refused_pods import MOST_DECIDED, Welcome
from extender.state.node_report import Report
from extender.state.node_view import NodeView
from extender.state.pods import Changes
from lab.standins.patience import PATIENCE_S
from numakin.placement.state.occupancy import fingerprint
from numakin.process.threads import Threads
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from tests.extender.machines import want
from tests.extender.running import machine, reservation
from tests.supervised import threads


def reported(cluster: Cluster, name: str, *reservations, generation: int = 1) -> None:
    report = Report(generation, 0, fingerprint(reservations, []), tuple(reservations), registered=True)
    assert isinstance(cluster.reported(NodeView(name, "session", "1", machine()), report), NodeView)


def refused(cluster: Cluster, count: int, name: str = "n1") -> list[Wanted]:
    """Pods, no two alike, that need exclusive CPUs on one NUMA node: none of it is answered from the arrays."""
    asked = [
        want(f"p{number}", policy="single-numa-node", cpus="exclusive", cpu="6", memory=f"{number + 1}Mi")
        for number in range(count)
    ]
    for entry in asked:
        assert set(cluster.refusals(entry, [name])) == {name}
    return asked


def full(cluster: Cluster, name: str = "n1") -> None:
    cluster.connected(name)
    reported(cluster, name, reservation("a", "0", milli=4000), reservation("b", "1", milli=4000))


class TestALook:
    def test_it_asks_for_a_bounded_number_of_decisions_and_goes_on_where_it_ended(self) -> None:
        cluster = Cluster()
        full(cluster)
        refused(cluster, 2 * MOST_DECIDED + 1)
        reported(cluster, "n1", reservation("a", "0", milli=4000), reservation("b", "1", milli=3900), generation=2)
        looks = []
        while not looks or not looks[-1].complete:
            looks.append(cluster.pods_to_retry(["n1"]))
            assert len(looks) <= 10
        assert len(looks) == 3
        assert all(poll.pods == () for poll in looks)

    def test_a_pod_that_a_node_would_take_is_found_once(self) -> None:
        cluster = Cluster()
        full(cluster)
        (asked,) = refused(cluster, 1)
        assert cluster.pods_to_retry(["n1", "unknown"]) == Welcome((), complete=True)
        reported(cluster, "n1", reservation("a", "0", milli=4000), generation=2)
        assert cluster.pods_to_retry(["n1"]) == Welcome((asked.pod,), complete=True)
        assert cluster.pods_to_retry(["n1"]) == Welcome((), complete=True)

    def test_of_many_that_wait_only_as_many_are_woken_as_fit(self) -> None:
        """One NUMA node of 8 CPUs has become free; each wants 3."""
        cluster = Cluster()
        full(cluster)
        waiting = [want(f"p{number}", policy="single-numa-node", cpu="3") for number in range(20)]
        reported(cluster, "n1", reservation("a", "0", milli=7000), reservation("b", "1", milli=7000), generation=2)
        assert all(cluster.refusals(asked, ["n1"]) for asked in waiting)
        reported(cluster, "n1", reservation("a", "0", milli=7000), generation=3)
        woken = cluster.pods_to_retry(["n1"]).pods
        assert len(woken) == 2
        assert cluster.pods_to_retry(["n1"]).pods == (), "their places are kept for them for a while"

    def test_a_woken_pod_that_was_refused_again_leaves_its_place_to_others(self) -> None:
        cluster = Cluster()
        full(cluster)
        waiting = [want(f"p{number}", policy="single-numa-node", cpu="6") for number in range(2)]
        assert all(cluster.refusals(asked, ["n1"]) for asked in waiting)
        reported(cluster, "n1", reservation("a", "0", milli=4000), generation=2)
        (woken,) = cluster.pods_to_retry(["n1"]).pods
        cluster.apply_pods(Changes(gone=(woken.uid,)))
        assert len(cluster.pods_to_retry(["n1"]).pods) == 1

    def test_a_pod_that_has_gone_is_not_woken(self) -> None:
        cluster = Cluster()
        full(cluster)
        (asked,) = refused(cluster, 1)
        cluster.apply_pods(Changes(gone=(asked.pod.uid,)))
        reported(cluster, "n1", generation=2)
        assert cluster.pods_to_retry(["n1"]) == Welcome((), complete=True)

    def test_nor_one_that_was_bound_after_another_replica_was_asked(self) -> None:
        cluster = Cluster()
        full(cluster)
        (asked,) = refused(cluster, 1)
        cluster.apply_pods(Changes(rows=(asked.pod,)))
        cluster.apply_pods(Changes(rows=(replace(asked.pod, node="n2"),)))
        reported(cluster, "n1", generation=2)
        assert cluster.pods_to_retry(["n1"]) == Welcome((), complete=True)


class TestTheThread:
    def test_a_report_does_not_wait_for_a_look(self) -> None:
        """The look is held until the report is through; on the stream's own thread it would never be."""
        let_go, looking, woken = threading.Event(), Queue(), Queue()

        def look(nodes) -> Welcome:
            looking.put(set(nodes))
            assert let_go.wait(PATIENCE_S)
            return Welcome((want("p").pod,), complete=True)

        welcoming = RefusedPodChecks(look, woken.put, threads=threads())
        welcoming.start()

        class Program(SessionCallbacks):
            def changed(self, node: str) -> None:
                welcoming.changed(node)

        cluster = Cluster()
        session = ReportSession(cluster, Program(), cluster.clock)
        for message in stream():
            answers = session.receive(message)
        assert answers
        assert looking.get(timeout=PATIENCE_S) == {"n1"}
        let_go.set()
        assert [pod.uid for pod in woken.get(timeout=PATIENCE_S)] == ["p"]
        welcoming.stop(PATIENCE_S)

    def test_nodes_that_change_meanwhile_are_looked_at_together_and_what_was_left_too(self) -> None:
        let_go, looking, woken = threading.Event(), Queue(), Queue()
        answers = iter([Welcome((), complete=False), Welcome((), complete=True)])

        def look(nodes) -> Welcome:
            looking.put(set(nodes))
            assert let_go.wait(PATIENCE_S)
            return next(answers)

        welcoming = RefusedPodChecks(look, woken.put, threads=threads())
        welcoming.start()
        welcoming.changed("n1")
        assert looking.get(timeout=PATIENCE_S) == {"n1"}
        for name in ("n2", "n3", "n2"):
            welcoming.changed(name)
        let_go.set()
        assert looking.get(timeout=PATIENCE_S) == {"n1", "n2", "n3"}
        welcoming.stop(PATIENCE_S)

    def test_nodes_of_a_look_that_failed_are_looked_at_again(self) -> None:
        looking, failures = Queue(), Queue()

        def look(nodes) -> Welcome:
            looking.put(set(nodes))
            if failures.empty():
                raise ValueError("a fault")
            return Welcome((), complete=True)

        welcoming = RefusedPodChecks(look, lambda _: None, threads=Threads(failures.put))
        welcoming.start()
        welcoming.changed("n1")
        assert [looking.get(timeout=PATIENCE_S) for _ in range(2)] == [{"n1"}, {"n1"}]
        welcoming.stop(PATIENCE_S)


def stream():
    yield pb.FromEnforcer(hello=pb.Hello(node="n1", session="s", version="1"))
    yield pb.FromEnforcer(machine=convert.machine_to(machine()))
    yield pb.FromEnforcer(report=pb.Report(generation=1, fingerprint=fingerprint([], []), registered=True))
