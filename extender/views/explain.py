"""Why a pod is, or would be, where it is: JSON-ready answers for people and tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from extender.cluster import Cluster
from extender.scoring.history import ExplainRow, Offer, PodStory
from extender.scoring.predict import Prediction, Wanted, opt_ins, predict
from extender.state.node_report import DecisionRow
from extender.state.node_view import Assumption
from extender.views import readout, regroup
from extender.views.nearness import nearness, place
from extender.views.summary import sentence
from numakin.placement.decide.decide import Reason
from numakin.placement.optin.parsing import problems

NO_ENFORCER = "no enforcer has reported this node"
NOT_REGISTERED = "its enforcer is not registered with the container runtime"

POWERLESS = "numakin places few pods there: {}"

SHOWN_WITHIN_S = 10.0
"""Seconds after a question of kube-scheduler's, by which the watch has shown its pod."""

MOST_ALIKE = 5
"""Pods that are named in place of one that is not known."""


def explain(cluster: Cluster, namespace: str, name: str, most_nodes: int | None = None) -> dict[str, Any] | None:
    """Node by node what was weighed for the pod, then what happened; None when nothing is known of it.

    most_nodes: of those that were scored, only the best; None: all.
    """
    story = cluster.story(namespace, name)
    if story is None:
        return None
    offer, decisions, assumed = story.offer, story.decisions, story.assumption
    group = offer.want.group if offer else _group(cluster, story)
    return {
        "uid": story.uid,
        "pod": f"{namespace}/{name}",
        "summary": _summary(cluster, story, name, group or ""),
        "group": group,
        "membership": _membership(cluster, story),
        "unscored": story.unscored,
        "scored": _scored(offer, story.at, most_nodes) if offer else None,
        "expected": _expected(assumed, story.at) if assumed else None,
        "held": readout.group_room(cluster.held_for(group)) if group else [],
        "regroup": regroup.of_group(cluster.regroupings, group) if group else None,
        "happened": [_happened(row) for row in decisions],
    }


def _summary(cluster: Cluster, story: PodStory, name: str, group: str) -> str:
    """Where it is and why in a sentence; empty where neither is known."""
    here = place(cluster, story.uid)
    if here is None and _has_ended(story):
        return f"{name} has ended"
    row = next((row for row in story.offer.rows if row.node == here.node), None) if story.offer and here else None
    near = nearness(cluster, story.uid, group, here) if here else None
    placed = [decision for decision in story.decisions if decision.event != "nomination"]
    predicted = _predicted(row, story.offer.want) if story.offer and row else None
    held = not placed and story.assumption is not None
    return sentence(name, here, placed, predicted, near, held=held) or _unplaced(cluster, story, name)


def _has_ended(story: PodStory) -> bool:
    """Of one that its node does not show any more. One that was scored a moment ago the watch may not have shown."""
    return story.gone and (story.offer is None or story.at - story.offer.at > SHOWN_WITHIN_S)


def _unplaced(cluster: Cluster, story: PodStory, name: str) -> str:
    """Empty where the API server does not have it."""
    if story.row is None:
        return ""
    node = story.row.node
    if not node:
        return f"{name} waits for a node"
    reported = cluster.view(node) is not None
    return f"{name} is on {node}, {'whose enforcer has not reported it' if reported else 'where no enforcer reports'}"


def _predicted(row: ExplainRow, want: Wanted) -> Reason | None:
    """The first reason for the place that was predicted there."""
    if row.view is None:
        return None
    try:
        reasons = predict(row.view.machine, row.view.occupancy, want, row.kin).decisions[0].reasons
    except Exception:  # noqa: BLE001 - as it was when it was scored: `faults` has logged it
        return None
    return reasons[0] if reasons else None


def _membership(cluster: Cluster, story: PodStory) -> str | None:
    """Why it is a member of a group that was found by traffic."""
    row = story.offer.want.pod if story.offer else story.row
    workload = row.workload if row is not None else cluster.picture().workloads.get(story.uid, "")
    member = cluster.known.found.members.get(workload)
    return f"member of {member.group}: {member.reason}" if member else None


def _group(cluster: Cluster, story: PodStory) -> str | None:
    """Of a pod that was not scored here: as its annotations name it or, as the API server is not asked or has it no
    more, as its node's enforcer reported it; None where nothing says it.
    """
    named = (opt_in.group for opt_in in opt_ins(story.row).values()) if story.row is not None else ()
    found = next((group for group in named if group), "")
    return found or cluster.group_on_node(story.uid) or None


def unknown(cluster: Cluster, namespace: str, name: str) -> str:
    """Why nothing is known of a pod: with the names of the same namespace's pods that could be meant."""
    picture = cluster.picture()
    row = next((row for row in picture.rows.values() if (row.namespace, row.name) == (namespace, name)), None)
    if row is not None:
        why = f"pod {namespace}/{name} has no annotation group.numakin.io that counts: numakin leaves it alone"
        return "; ".join((why, *problems(namespace, row.annotations, [each.name for each in row.containers]).lines))
    names = (pod.partition("/") for pod in picture.names.values())
    own = sorted(pod for space, _, pod in names if space == namespace)
    stem = name.partition("-")[0]
    alike = [pod for pod in own if name in pod] or [pod for pod in own if pod.partition("-")[0] == stem]
    if alike:
        hint = f"; known are {', '.join(alike[:MOST_ALIKE])}" + (" and others" if len(alike) > MOST_ALIKE else "")
    elif picture.rows:
        hint = ""
    elif own:
        hint = "; other pods of its namespace are known: has it the annotation group.numakin.io, on the pod itself?"
    else:
        hint = f"; no pod of namespace {namespace} is known that has the annotation group.numakin.io itself"
    if picture.rows:
        return f"the API server has no pod {namespace}/{name} that has not ended{hint}"
    return f"pod {namespace}/{name} was neither scored nor reported lately{hint}"


def _scored(offer: Offer, now: float, most_nodes: int | None) -> dict[str, Any]:
    rows = sorted(offer.rows, key=lambda row: (-row.score, row.node))[:most_nodes]
    return {
        "seconds_ago": round(now - offer.at, 3),
        "nodes_scored": len(offer.names),
        "nodes": [weighed(row, offer.want, offer.beside(row.node)) for row in rows],
    }


def weighed(row: ExplainRow, want: Wanted, beside: Sequence[str] = ()) -> dict[str, Any]:
    """The decisions are made anew on the very values that were scored, so they are the same. beside: where kin are that
    pull the pod there from other nodes.
    """
    row_json: dict[str, Any] = {"node": row.node, "score": row.score}
    if row.view is None:
        return {**row_json, "reasons": [NO_ENFORCER]}
    try:
        prediction = predict(row.view.machine, row.view.occupancy, want, row.kin)
    except Exception as error:  # noqa: BLE001 - as it was when it was scored: `faults` has logged it
        return {**row_json, "reasons": [f"it could not be weighed: {type(error).__name__}: {error}"]}
    reasons = [] if row.view.registered else [NOT_REGISTERED]
    reasons += [POWERLESS.format(row.view.yielded)] if row.view.yielded.powerless else []
    return {
        **row_json,
        "numa_nodes": str(prediction.numa_nodes),
        "fits": prediction.fits,
        "decision_score": round(prediction.score, 6),
        "containers": _containers(want, prediction),
        "reasons": [*reasons, *map(str, prediction.decisions[0].reasons), *beside],
        "kin_elsewhere": row.kin.elsewhere,
        "data_age_seconds": round(row.age, 3),
        "generation": row.view.generation,
    }


def _containers(want: Wanted, prediction: Prediction) -> list[dict[str, Any]]:
    return [
        {
            "name": request.name,
            "numa_nodes": str(decision.numa_nodes),
            "cpus": str(decision.cpus),
            "mems": str(decision.mems),
        }
        for request, decision in zip(want.requests, prediction.decisions, strict=True)
    ]


def _expected(held: Assumption, now: float) -> dict[str, Any]:
    return {
        "node": held.node,
        "numa_nodes": str(held.numa_nodes),
        "bound": held.bound,
        "gang": held.gang,
        "counts_for_its_gang_alone": held.private,
        "expires_in_seconds": round(held.until - now, 3),
    }


def _happened(row: DecisionRow) -> dict[str, Any]:
    return {
        "container": row.container,
        "event": row.event,
        "numa_nodes": row.numa_nodes,
        "cpus": row.cpus,
        "mems": row.mems,
        "score": row.score,
        "reasons": row.sentences,
        "nomination": row.outcome,
        "nominated": row.nominated,
        "generation": row.generation,
    }
