"""What happens in the cluster, one scenario after the other. Each is a function of the cluster that returns its
finding; the order is the table's at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from benchmarks.cluster import load
from benchmarks.cluster.best import reachable
from benchmarks.cluster.control.extender import within
from benchmarks.cluster.driver import Cluster
from benchmarks.cluster.load import Replica
from benchmarks.cluster.nodes.node import Landing
from benchmarks.cluster.result import Finding, nominations
from benchmarks.cluster.rolling import figures, rolled, summary
from benchmarks.cluster.wholeness import split

TALK_S = 60.0
"""The seconds that each reported window of traffic covers."""

REQUESTS = 6000.0
"""Hundreds of user requests that each application serves in a window: 10,000 a second."""

WINDOWS = 3

LEARNED_WITHIN_S = 30.0
"""The extender learns in the background; how long that may take."""

WRITTEN_WITHIN_S = 90.0
"""How long it may take to write down what must outlive it: a group's text is renewed once a minute, among thousands of
objects, each in its turn.
"""


def steady(cluster: Cluster) -> Finding:
    """Applications roll out at the same time, each pod running before the next is created; or, where the plan says so,
    all of them created before the first is scheduled.
    """
    apps = [load.wide(), *load.instances(min(30, 2 + cluster.plan.nodes // 25), cluster.random)]
    replicas = load.arrivals(apps, cluster.random)
    begin, hidden = time.monotonic(), cluster.hidden
    together = cluster.plan.together
    landings = cluster.run(cluster.schedule(replicas)) if together else cluster.place(replicas)
    seconds = time.monotonic() - begin
    name = "arrivals together" if together else "steady arrivals"
    return _finding(cluster, name, replicas, landings, seconds, hidden)


def small_groups(cluster: Cluster) -> Finding:
    """Pairs and groups of ten, one group after the other and mixed, as their controllers make them: nobody waits for
    the binding of the pod before. They are deleted afterwards.
    """
    mixed = load.arrivals(load.tens(30, "mixed"), cluster.random)
    waves = {"pairs": load.in_turn(load.pairs(40)), "groups of ten": load.in_turn(load.tens(30, "ten"))}
    waves["groups of ten, mixed"] = mixed
    begin, hidden = time.monotonic(), cluster.hidden
    landings: list[Landing] = []
    splits: dict[str, float] = {}
    for wave, replicas in waves.items():
        landings += cluster.run(cluster.schedule(replicas))
        splits[f"{wave} split"] = float(len(split(cluster, replicas)))
    seconds = time.monotonic() - begin
    everybody = [replica for replicas in waves.values() for replica in replicas]
    finding = _finding(cluster, "small groups", everybody, landings, seconds, hidden)
    cluster.end(everybody)
    remark = ", ".join(f"{count:.0f} {wave}" for wave, count in splits.items())
    return replace(finding, remark=f"{remark} though a node had room", figures=splits)


def burst(cluster: Cluster) -> Finding:
    """A group's members are all scheduled before the first of them runs."""
    replicas = load.burst(cluster.plan.burst).replicas()
    return _at_once(cluster, "burst", replicas)


def crowd(cluster: Cluster) -> Finding:
    """As a burst, of many groups with large members, some with CPUs of their own, until half of the room is taken or
    as many as the burst are there.
    """
    room = sum(spec.allocatable_milli for spec in cluster.specs.values()) // (2 * max(load.CROWD_MILLI))
    replicas = load.crowd(min(cluster.plan.burst, room), cluster.random)
    return _at_once(cluster, "crowd", replicas)


def _at_once(cluster: Cluster, name: str, replicas: Sequence[Replica]) -> Finding:
    begin, hidden, pending = time.monotonic(), cluster.hidden, cluster.pending
    pods = cluster.schedule(replicas)
    seconds = time.monotonic() - begin
    landings = cluster.run(pods)
    placed = [pod.replica for pod in pods]
    spots = Counter(cluster.places[replica] for replica in placed)
    finding = _finding(cluster, name, placed, landings, seconds, hidden)
    remark = f"on {len(spots)} NUMA nodes of {len({node for node, _ in spots})} nodes"
    left = f"; {cluster.pending - pending} fitted nowhere" if cluster.pending > pending else ""
    return replace(finding, remark=f"{remark}{left}; {len(pods) / seconds:.0f} pods/s with their creation")


def rolling(cluster: Cluster) -> Finding:
    """Every Deployment of one application gets a new revision: a new pod comes, then an old one goes.

    Its traffic was reported before, so that the replacements' kin are known by workload.
    """
    traffic(cluster)
    return _rolled(cluster, "rolling update")


def rolling_again(cluster: Cluster) -> Finding:
    """What was learned must have survived the extender's restart: no traffic is reported again."""
    return _rolled(cluster, "rolling update again")


def _rolled(cluster: Cluster, name: str) -> Finding:
    app = next(pod.instance for pod in cluster.pods if pod.namespace == "wide")
    before = cluster.locality(pod for pod in cluster.pods if pod.instance == app)
    begin, hidden = time.monotonic(), cluster.hidden
    replaced = rolled(cluster, app)
    seconds = time.monotonic() - begin
    landings = [pod.landing for pod in replaced]
    after = [pod for pod in cluster.pods if pod.instance == app]
    finding = _finding(cluster, name, after, landings, seconds, hidden)
    named = sum(landing.kin > 0 for landing in landings)
    remark = f"locality before {before:.3f}; {summary(replaced)}; {named} of {len(landings)} nominations named kin"
    return replace(
        finding, remark=remark, figures={"before": before, "nominations that named kin": named, **figures(replaced)}
    )


def returning(cluster: Cluster) -> Finding:
    """An application that no NUMA node holds was scaled to nothing, and comes again in another order. Its traffic was
    reported before.
    """
    traffic(cluster)
    old = [pod for pod in cluster.pods if pod.namespace == "wide"]
    before, revision = cluster.locality(old), 1 + max(replica.revision for replica in old)
    cluster.end(old)
    names = {replica.workload for replica in old}
    planned = within(lambda: not cluster.extender.running(names), LEARNED_WITHIN_S) and cluster.extender.planned()
    if not planned or not names <= planned:
        cluster.missing.append(
            f"of {len(names)} workloads to come the extender planned {len(cluster.extender.planned())}"
        )
    new = [replace(replica, revision=revision) for replica in old]
    cluster.random.shuffle(new)
    begin, hidden = time.monotonic(), cluster.hidden
    landings = cluster.place(new)
    finding = _finding(cluster, "returning", new, landings, time.monotonic() - begin, hidden)
    return replace(finding, remark=f"locality before {before:.3f}", figures={"before": before})


def traffic(cluster: Cluster) -> None:
    """The observers report the traffic of all running pods, and the extender has taken it in."""
    replicas = list(cluster.pods)
    cluster.talk(replicas, requests=REQUESTS, seconds=TALK_S, windows=WINDOWS)
    pairs = {(talk.source.workload, talk.target.workload) for talk in load.talks(replicas)}
    both_ways = len({*pairs, *((target, source) for source, target in pairs)})
    if not within(lambda: cluster.extender.edges() >= both_ways, LEARNED_WITHIN_S):
        cluster.missing.append(f"of {both_ways} reported edges the extender learned {cluster.extender.edges()}")


def node_loss(cluster: Cluster) -> Finding:
    """The node with members of most groups loses power; their controllers make new ones, which go elsewhere."""
    groups: dict[str, list[str]] = {}
    for replica, pod in cluster.pods.items():
        groups.setdefault(pod.node, []).append(replica.namespace)
    node = max(groups, key=lambda group: (len(set(groups[group])), len(groups[group]), group))
    before = cluster.locality()
    gone = cluster.lose([node])
    instances = {replica.instance for replica in gone}
    begin, hidden = time.monotonic(), cluster.hidden
    landings = cluster.place([replace(replica, index=replica.index + 1000) for replica in gone])
    seconds = time.monotonic() - begin
    affected = [replica for replica in cluster.pods if replica.instance in instances]
    finding = _finding(cluster, "node loss", affected, landings, seconds, hidden)
    return replace(
        finding, pods=len(gone), remark=f"locality of all before {before:.3f}, after {cluster.locality():.3f}"
    )


def enforcer_restarts(cluster: Cluster) -> Finding:
    """A tenth of the enforcers start anew: what they pinned must stay where it is."""
    names = sorted(cluster.specs)
    chosen = sorted(cluster.random.sample(names, max(1, len(names) // 10)))
    begin = time.monotonic()
    changed = cluster.fleet.call("restart", chosen)
    cluster.settled()
    seconds = time.monotonic() - begin
    finding = _finding(cluster, "enforcer restarts", list(cluster.pods), [], seconds, cluster.hidden)
    remark = f"{len(chosen)} enforcers; {len(changed)} pods' cpusets changed"
    return replace(finding, pods=0, remark=remark, figures={"cpusets changed": len(changed)})


def extender_restart(cluster: Cluster) -> Finding:
    """kill -9 once the groups' objects hold all that was learned, and a new start."""
    edges, asked = cluster.extender.edges(), time.monotonic()
    within(lambda: cluster.kube.learned() >= edges, WRITTEN_WITHIN_S)
    written, waited = cluster.kube.learned(), time.monotonic() - asked
    if written < edges:
        cluster.missing.append(f"of {edges} learned edges the AffinityGroups hold {written} after {waited:.0f} s")
    before = cluster.extender.known()
    cluster.extender.kill()
    cpu_s = cluster.extender.usage()[0]
    begin = time.monotonic()
    cluster.extender.start()
    started = time.monotonic() - begin
    half, whole = cluster.extender.relearned(before, len(cluster.specs))
    within(lambda: cluster.extender.edges() >= written, LEARNED_WITHIN_S)
    again, seconds = cluster.extender.edges(), time.monotonic() - begin
    cluster.settled()
    cluster.reconnect()
    cpu_s = cluster.extender.usage()[0] - cpu_s
    finding = _finding(cluster, "extender restart", list(cluster.pods), [], seconds, cluster.hidden)
    remark = (
        f"ports open after {started:.1f} s; then half of the nodes in {half:.1f} s, everything in {whole:.1f} s; "
        f"{edges} edges learned, {written} written before the kill (waited {waited:.1f} s for that), {again} known "
        f"{seconds:.1f} s after the start; {cpu_s:.1f} CPU seconds"
    )
    figures = {
        "ports open s": started,
        "half s": half,
        "re-learned s": whole,
        "edges before": edges,
        "edges written": written,
        "edges after": again,
        "cpu s": cpu_s,
    }
    return replace(finding, pods=0, remark=remark, figures=figures)


def _finding(
    cluster: Cluster,
    name: str,
    about: Sequence[Replica],
    landings: Iterable[Landing],
    seconds: float,
    hidden: int,
) -> Finding:
    rows = list(landings)
    local = cluster.locality(about)
    best = max(local, reachable(cluster.specs.values(), about))
    return Finding(
        scenario=name,
        pods=len(rows),
        seconds=seconds,
        locality=local,
        share=local / best if best else 1.0,
        nominations=nominations(rows),
        hidden=cluster.hidden - hidden,
        over_commitments=len(cluster.fleet.call("overcommitments")),
        placements=cluster.digest(),
    )


SCENARIOS: Sequence[Callable[[Cluster], Finding]] = (
    small_groups,
    steady,
    burst,
    rolling,
    node_loss,
    enforcer_restarts,
    extender_restart,
    rolling_again,
    crowd,
    returning,
)
