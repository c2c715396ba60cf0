"""What was decided, for the log, for reports and for people: worded only after the runtime has its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from math import isnan

from enforcer.hook.facts.pods import Claim
from numakin.placement.decide.asked.quota import QUOTA
from numakin.placement.decide.decide import Decision, Reason
from numakin.placement.model.cpuset import NumaSet
from numakin.placement.optin.parsing import Problems, bad_values, problems
from numakin.placement.state.occupancy import Allocation, Reservation
from numakin.process.durations import Durations
from numakin.process.log import Log
from numakin.wire import convert
from numakin.wire import local_pb2 as local
from numakin.wire import nri_pb2 as nri
from numakin.wire import report_pb2 as pb

log = Log("hook.agent")

RELIEF = frozenset({"let out", "home again"})
"""Reasons of which only the last counts."""

COUNTED = {"move": "moved", "room": "improved"}
"""Decisions on running members, by event."""

OUTCOMES = {number: name.lower() for name, number in pb.Outcome.items()}

MOST_RECORDS = 1024
"""Decisions kept for the next report; the oldest go first when no observer reads them."""

ITS_EVENTS = "the pod's events (kubectl describe pod) name the plugin"


class DecisionRecords:
    """`counts` of each outcome are current; `take` and `latest` compose what is pending first."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.durations = Durations()
        """Of the decisions themselves."""
        self._pending: list[Callable[[], object]] = []
        self._records: list[pb.DecisionRecord] = []
        self._latest: dict[str, bytes] = {}
        """By container id; encoded, which takes a fifth of a message's memory."""
        self._complaints: dict[str, Problems] = {}
        self._vm_runtimes: set[str] = set()

    @property
    def waiting(self) -> bool:
        """Whether `take` has something."""
        return bool(self._pending or self._records)

    def compose(self) -> None:
        """Writes what is pending into the log and the records; called once the runtime has its answer."""
        pending, self._pending = self._pending, []
        for log_it in pending:
            log_it()

    def take(self) -> list[pb.DecisionRecord]:
        """What was decided since the last call."""
        self.compose()
        taken, self._records = self._records, []
        return taken

    def latest(self) -> dict[str, pb.DecisionRecord]:
        """The last decision on each container that was not forgotten, by its id."""
        self.compose()
        return {container: pb.DecisionRecord.FromString(record) for container, record in self._latest.items()}

    def keep(self, containers: Collection[str]) -> None:
        """Forgets all others."""
        self._pending.append(lambda: [self._latest.pop(gone) for gone in self._latest.keys() - containers])

    def forget(self, container: str) -> None:
        self._pending.append(lambda: self._latest.pop(container, None))

    def decided(
        self,
        pod: nri.PodSandbox,
        container: nri.Container,
        decision: Decision,
        nominated: NumaSet,
        *,
        event: str,
        at: int,
    ) -> None:
        """at: the generation of the occupancy that the decision led to."""
        outcome = pb.UNPROMISED if not nominated else pb.KEPT if decision.numa_nodes == nominated else pb.DECLINED
        self.counts["pinned" if decision.fits else "left open"] += 1
        self.counts[OUTCOMES[outcome]] += 1
        self.counts["over quota"] += any(reason.what == QUOTA for reason in decision.reasons)
        self._pending.append(
            lambda: self._log_placed(pod, container, decision, event=event, at=at, nominated=nominated, outcome=outcome)
        )

    def shares_again(self, member: local.LocalContainer, decision: Decision, *, at: int) -> None:
        """A running member that was alone on more CPUs than it asked for."""
        self.counts["shares again"] += 1
        self._pending.append(lambda: self._log_placed(*as_told(member), decision, event="room", at=at))

    def again(self, member: local.LocalContainer, decision: Decision, why: Reason, *, event: str, at: int) -> None:
        """A decision on a running member. why: what led to it, beside the decision's own reasons. event: `move`; `room`
        where there is more than when it came; `update` where it asks for more or fewer CPUs of its own; `machine` where
        its place has gone.
        """
        if event in COUNTED:
            self.counts[COUNTED[event]] += 1
        explained = replace(decision, reasons=(why, *decision.reasons))
        self._pending.append(lambda: self._log_placed(*as_told(member), explained, event=event, at=at))

    def relieved(
        self, member: local.LocalContainer, given: Allocation, reservation: Reservation, why: Reason, *, at: int
    ) -> None:
        """A member that is let out of hot CPUs, or called home; the reasons for its place stay behind this one."""
        event = "let out" if reservation.let_out else "home again"
        if reservation.let_out:
            self.counts["let out"] += 1
        else:
            self.counts["home again"] += 1
        self._pending.append(lambda: self._relieved(member, given, reservation, why, event=event, at=at))

    def _relieved(
        self,
        member: local.LocalContainer,
        given: Allocation,
        reservation: Reservation,
        why: Reason,
        *,
        event: str,
        at: int,
    ) -> None:
        pod, container = as_told(member)
        log.info(f"container {event}", **names(pod, container), cpus=given.cpus, why=why)
        record = pb.DecisionRecord.FromString(self._latest.get(member.id, b""))
        kept = [reason for reason in record.reasons if reason.what not in RELIEF]
        record.MergeFrom(_record(pod, container, event))
        del record.reasons[:]
        record.reasons.extend([convert.reason_to(why), *kept])
        record.numa_nodes, record.cpus, record.mems = map(str, (reservation.numa_nodes, given.cpus, given.mems))
        record.outcome, record.nominated, record.generation = pb.UNPROMISED, "", at
        self._keep(record)

    def not_moved(self, why: Reason) -> None:
        self.counts["move declined"] += 1
        self._pending.append(lambda: log.info("a move was declined", why=why))

    def move_proven(self, moved: local.LocalContainer, proof: local.Moves.Proof) -> None:
        """What came of a move, for the log and beside the decision that it was; counted once for each container."""
        if isnan(proof.after):
            self.counts["move not judged"] += 1
            return
        if proof.helped:
            self.counts["move helped"] += 1
        else:
            self.counts["move did not help"] += 1
        self._pending.append(lambda: self._proven(moved, proof))

    def _proven(self, moved: local.LocalContainer, proof: local.Moves.Proof) -> None:
        where = "cache" if proof.in_cache else "NUMA node"
        result = "the move helped" if proof.helped else "the move did not help"
        shares = f"{proof.before:.0%} before, {proof.promised:.0%} promised: {result}"
        why = Reason(
            "proven", f"{proof.after:.0%}", f"of what the movers exchange here stays inside a {where}, {shares}"
        )
        name = f"{moved.namespace}/{moved.pod_name}"
        log.info(result, pod=name, container=moved.name, why=why)
        encoded = self._latest.get(moved.id)
        record = pb.DecisionRecord.FromString(encoded or b"")
        if record.event == "move":
            record.reasons.append(convert.reason_to(why))
            self._latest[moved.id] = record.SerializeToString()

    def move_planned(self, member: local.LocalContainer, source: str, target: str, why: str) -> None:
        """A move that holds and is not made, as an operator has asked for moves to be told alone."""
        self.counts["move planned"] += 1
        pod = f"{member.namespace}/{member.pod_name}"
        self._pending.append(lambda: log.info("a move is planned", pod=pod, source=source, target=target, why=why))

    def conflict(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """Left open, since another plugin claims its cpuset after us."""
        self.counts["conflict"] += 1
        why = "another NRI plugin that is asked after numakin sets the cpuset too: left open, or it can't be created"
        self._left(pod, container, "conflict", Reason("another owner", "", why))

    def yielded(self, pod: nri.PodSandbox, container: nri.Container, claim: Claim) -> None:
        self.counts["yielded"] += 1
        fields = {**names(pod, container), "claimed_cpus": claim.cpus, "claimed_mems": claim.mems}
        self._pending.append(lambda: log.warning("yielded", **fields))
        cpuset = f"cpus {claim.cpus or '-'}, mems {claim.mems or '-'}"
        self._left(pod, container, "yielded", Reason("another owner", "", f"the cpuset ({cpuset}) is somebody else's"))

    def never_created(self, pod: nri.PodSandbox, container: nri.Container, *, opened: bool) -> None:
        """The attempt before this container was answered and came to nothing. opened: though it was left open."""
        fields = names(pod, container)
        if opened:
            fault = "a container's creation fails without numakin's cpuset too; it is placed again"
            self._pending.append(lambda: log.warning(fault, **fields, todo=ITS_EVENTS))
            return
        self.counts["never created"] += 1
        lost = "a container was answered and never created: left open, as another NRI plugin may set its cpuset too"
        self._pending.append(lambda: log.warning(lost, **fields, todo=ITS_EVENTS))

    def conflict_proven(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """It was created once it was left open."""
        fields = names(pod, container)
        what = "another NRI plugin that is asked after numakin sets cpusets: this workload's containers are left to it"
        self._pending.append(lambda: log.warning(what, **fields, todo=ITS_EVENTS))

    def in_vm(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """A container that opted in and runs in a virtual machine; said once for each runtime handler."""
        self.counts["in vm"] += 1
        handler = pod.runtime_handler
        if handler not in self._vm_runtimes:
            self._vm_runtimes.add(handler)
            what = "containers of a runtime of virtual machines are left open: their cpuset would size the machine"
            fields = {"handler": handler, **names(pod, container), "option": "--vm-runtimes"}
            self._pending.append(lambda: log.warning(what, **fields))
        why = "left open: its cpuset would size its virtual machine (--vm-runtimes)"
        self._left(pod, container, "vm", Reason("runtime", handler, why))

    def refused(self, pod: nri.PodSandbox, container: nri.Container, why: str) -> None:
        """A cpuset that the kernel did not take."""
        self.counts["refused"] += 1
        fields = {**names(pod, container), "why": why}
        self._pending.append(lambda: log.warning("cpuset refused; the container is left alone", **fields))
        self._left(pod, container, "refused", Reason("left alone", "", why))

    def amend(self, member: local.LocalContainer, what: str, why: Reason | None, home: NumaSet) -> None:
        """What was found out about a running container since its last decision: `why` takes the place of that one's
        reason about the same (`what`); None: there is nothing to say of it any more. home: where it is.
        """
        self._pending.append(lambda: self._amend(member, what, why, home))

    def _amend(self, member: local.LocalContainer, what: str, why: Reason | None, home: NumaSet) -> None:
        encoded = self._latest.get(member.id)
        record = pb.DecisionRecord.FromString(encoded or _record(*as_told(member), "read back").SerializeToString())
        record.numa_nodes = record.numa_nodes or str(home)
        kept = [reason for reason in record.reasons if reason.what != what]
        del record.reasons[:]
        record.reasons.extend([*kept, convert.reason_to(why)] if why is not None else kept)
        log_it = log.warning if why is not None else log.info
        effect = why.effect if why is not None else "as it was given again"
        log_it("container read back", **names(*as_told(member)), about=what, found=effect)
        self._keep(record)

    def released(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """A member that is left open since a release, or that was pinned until then."""
        why = "nothing is pinned until `numakin-enforcer resume`"
        self._left(pod, container, "release", Reason("released", "", why))

    def late(self, nomination: pb.Expect, home: NumaSet) -> None:
        """A nomination that came after its pod's container."""
        self.counts["late"] += 1
        self._later(
            pb.DecisionRecord(
                pod=nomination.pod,
                namespace=nomination.namespace,
                pod_name=nomination.name,
                numa_nodes=str(home),
                nominated=nomination.numa_nodes,
                outcome=pb.LATE,
                event="nomination",
            )
        )

    def check(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """The annotations, once the runtime has its answer: all of them for the pod's first container, then what
        concerns each.
        """
        self._pending.append(lambda: self._complain(pod, container.name))

    def _complain(self, pod: nri.PodSandbox, container: str) -> None:
        before = self._complaints.get(pod.uid)
        if before is None:
            new = problems(pod.namespace, pod.annotations, (container,))
        else:
            bad = bad_values(pod.namespace, pod.annotations, container)
            new = Problems(tuple(problem for problem in bad if problem not in before.named))
        self._complaints[pod.uid] = Problems((*before.named, *new.named) if before else new.named)
        if len(self._complaints) > MOST_RECORDS:
            del self._complaints[next(iter(self._complaints))]
        if new:
            self.counts["bad annotation"] += new.count
            log.warning("annotations not taken", pod=f"{pod.namespace}/{pod.name}", problems="; ".join(new.lines))

    def _log_placed(
        self,
        pod: nri.PodSandbox,
        container: nri.Container,
        decision: Decision,
        *,
        event: str,
        at: int,
        nominated: NumaSet = NumaSet(),
        outcome: pb.Outcome = pb.UNPROMISED,
    ) -> None:
        done = "moved" if event in {"move", "room"} and decision.fits else "pinned" if decision.fits else "left open"
        placed = {"numa_nodes": decision.numa_nodes, "cpus": decision.cpus, "mems": decision.mems}
        log.info(f"container {done}", **names(pod, container), **placed, why=decision.sentence)
        record = _record(pod, container, event)
        record.numa_nodes, record.cpus, record.mems = map(str, placed.values())
        record.score, record.generation = decision.score, at
        record.outcome, record.nominated = outcome, str(nominated)
        record.reasons.extend(map(convert.reason_to, decision.reasons))
        self._keep(record)

    def _left(self, pod: nri.PodSandbox, container: nri.Container, event: str, why: Reason) -> None:
        """A container that is given nothing."""
        record = _record(pod, container, event)
        record.reasons.append(convert.reason_to(why))
        self._later(record)

    def _later(self, record: pb.DecisionRecord) -> None:
        """In its turn, after what is pending."""
        self._pending.append(lambda: self._keep(record))

    def _keep(self, record: pb.DecisionRecord) -> None:
        self._records.append(record)
        if record.container:
            self._latest[record.container] = record.SerializeToString()
        del self._records[:-MOST_RECORDS]


def names(pod: nri.PodSandbox, container: nri.Container) -> dict[str, object]:
    """How the log names a container."""
    return {"pod": f"{pod.namespace}/{pod.name}", "container": container.name, "id": container.id[:12]}


def as_told(member: local.LocalContainer) -> tuple[nri.PodSandbox, nri.Container]:
    """A running one by its names, as the runtime has told them."""
    pod = nri.PodSandbox(uid=member.pod, namespace=member.namespace, name=member.pod_name)
    return pod, nri.Container(id=member.id, name=member.name)


def _record(pod: nri.PodSandbox, container: nri.Container, event: str) -> pb.DecisionRecord:
    return pb.DecisionRecord(
        pod=pod.uid,
        namespace=pod.namespace,
        pod_name=pod.name,
        container=container.id,
        container_name=container.name,
        event=event,
    )
