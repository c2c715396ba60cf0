"""What is wrong with a node, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from extender.scoring.node_table import NodeState
from extender.state.enforcer_health import EnforcerHealth
from numakin.placement.model.cpuset import CpuSet
from numakin.placement.state.yielded import Yielded
from numakin.process.version import VERSION
from numakin.wire.report_format import REPORT_FORMAT

STALLED = 0.1
"""Share of time from which waiting for memory is worth a warning."""


class Warned(NamedTuple):
    """what: to whom it happened, and what. action: what an operator can do."""

    what: str
    action: str


def warnings(state: NodeState, health: EnforcerHealth | None, weighing_faults: int) -> list[dict[str, str]]:
    """health: as the enforcer reported it last; None: it has not."""
    of_health = _of_health(health) if health else ()
    yields = _of_yields(state.view.yielded, health.cpuset_owners if health else "")
    return [
        warning._asdict()
        for warning in (*_of_enforcer(state), *of_health, *_of_machine(state), *yields, *_of_us(weighing_faults))
    ]


def _of_enforcer(state: NodeState) -> Iterator[Warned]:
    if not state.connected:
        yield Warned(
            f"the enforcer's report stream is closed since {state.age:.0f} s: what is shown may have changed",
            "kubectl get pods -A -l app.kubernetes.io/part-of=numakin -o wide: is the enforcer of this node running? "
            "Its log says whom it dials",
        )
    elif state.age > 30:
        yield Warned(
            f"the enforcer has sent nothing for {state.age:.0f} s",
            "numakin-enforcer status, on the node, says which of its threads gets nowhere",
        )
    if state.view.skewed:
        yield Warned(
            f"the enforcer ({state.view.version or 'version unknown'}) has report format {state.view.report_format}, "
            f"this extender ({VERSION}) format {REPORT_FORMAT}: reports are taken without their checksum",
            "bring both to one version, daemonset/numakin-enforcer and deployment/numakin-extender: "
            "docs/operations.md, Versions",
        )
    if not state.view.registered:
        yield Warned(
            "the enforcer is not registered with the container runtime: new pods start unpinned",
            "switch NRI on in the runtime's configuration, or run the enforcer with --mode bypass; "
            "numakin-enforcer doctor says which",
        )


def _of_health(health: EnforcerHealth) -> Iterator[Warned]:
    for thread in health.threads:
        if thread.stale:
            why = f": {thread.error}" if thread.error else ""
            yield Warned(
                f"the enforcer's thread {thread.name} has had no good round for {thread.since_success_s:.0f} s{why}",
                "containers are placed without it, by less knowledge; the enforcer's log has each failure",
            )
    if health.collector == "none":
        yield Warned(
            "no traffic is seen: no collector is in force",
            "numakin-enforcer doctor, on the node, says why each collector was refused",
        )


def _of_machine(state: NodeState) -> Iterator[Warned]:
    for numa_node, share in sorted(state.view.occupancy.live.stalled.items()):
        if share >= STALLED:
            yield Warned(
                f"NUMA node {numa_node} waits for memory {share:.0%} of the time: nothing more is bound to it",
                "lower the memory limits of what runs there, or move pods to another node",
            )
    occupancy = state.view.occupancy
    for mask in sorted(mask for mask, hot in occupancy.live.hot.items() if hot):
        out = sum(bool(reservation.let_out) for reservation in occupancy.reservations.values())
        yield Warned(
            f"CPUs {CpuSet(mask)} are hot, nearly all in use while others are not: no newcomers; on this node {out} "
            "members run beyond their home meanwhile",
            "raise the CPU requests of what runs there to what it uses, so that less of it is placed together",
        )


def _of_yields(yielded: Yielded, owners: str) -> Iterator[Warned]:
    """owners: who that may be, in words."""
    if yielded.containers:
        scored = "; the node scores 0, as one without an enforcer" if yielded.powerless else ""
        yield Warned(
            f"{yielded} ({owners or 'who that is, is not known'}), and are left alone{scored}",
            "set the kubelet's cpuManagerPolicy to none, run one plugin that sets cpusets on a node, or take the "
            "annotation away; docs/migration.md",
        )


def _of_us(weighing_faults: int) -> Iterator[Warned]:
    if weighing_faults:
        yield Warned(
            f"the node could not be weighed {weighing_faults} times, for a fault of numakin's; it then scores 0",
            "please report it, with the extender's log",
        )
