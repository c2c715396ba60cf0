"""The extender/v1 wire: bytes to values and back, without a socket.

kube-scheduler's structs carry no JSON tags, so their keys are Go's field names (`Pod`, `NodeNames`). Go reads them in
any case, and so do we; what we write is CamelCase. The Pod inside is an ordinary v1.Pod. Only the fields that placement
needs are decoded; the rest, managedFields above all, is skipped unread. Scores are JSON integers: kube-scheduler drops
a whole list for one float in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any

import msgspec

from extender.scheduler.pod_body import BadRequest, PodBody, row, shown
from extender.state.pods import PodRow
from numakin.placement.model import names as names_rules

NODES = 20_000
"""The most nodes in one request; Kubernetes supports 5,000 in a cluster."""

OPT_IN_KEY = b"group.numakin.io"
"""In the bytes of every pod that has opted in: kube-scheduler writes letters and dots as they are."""

PLAIN_BYTES = 512 << 10
"""Of a call that names nodes: 5,000 of them take 70 KB. One with Node objects is larger, or has few of them."""

POD_BYTES = 4 << 20
"""The Pod of one request; etcd takes 1.5 MiB of any object."""

NAMES_BYTES = NODES * 256
"""The node names of one request."""

VALUES = 5_000_000
"""Commas in one body, counted before it is decoded: Node objects have one in 20 bytes, and a body of nothing else would
take 40 times its size.
"""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What /filter and /prioritize get. names: the offered nodes in their order.

    items: their Node objects as received, when nodeCacheCapable is false; None when only names were sent.
    """

    pod: PodRow
    names: tuple[str, ...]
    items: tuple[msgspec.Raw, ...] | None = None


@dataclass(frozen=True, slots=True)
class Victims:
    """Who would be evicted from one node: pod uids, and how many disruption budgets that breaks."""

    pods: tuple[str, ...]
    budgets_broken: int = 0


@dataclass(frozen=True, slots=True)
class PreemptArguments:
    pod: PodRow
    victims: Mapping[str, Victims]


@dataclass(frozen=True, slots=True)
class FilterRefusals:
    """Node name -> reason. hopeless: those that no eviction could help."""

    failed: Mapping[str, str] = field(default_factory=dict)
    hopeless: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """Pods that are not created. names: the nodes that they may go to; None: every node that is known."""

    pods: tuple[PodRow, ...]
    names: tuple[str, ...] | None


class _Named(msgspec.Struct, gc=False):
    name: str


class _Node(msgspec.Struct, gc=False):
    metadata: _Named


class _HostPriority(msgspec.Struct, rename="pascal", gc=False):
    host: str
    score: int


def arguments(body: bytes) -> Arguments:
    """The body of /filter and /prioritize; BadRequest when it is not one."""
    keys = _top(body)
    pod = _pod(keys)
    _within("NodeNames", keys.get("nodenames"), NAMES_BYTES)
    names = _typed(keys.get("nodenames"), list[str] | None, "NodeNames")
    if names is not None:
        return Arguments(pod, _named(names, "NodeNames"))
    nodes = keys.get("nodes")
    if nodes is None or bytes(nodes) == b"null":
        raise BadRequest("the request has neither NodeNames nor Nodes")
    listed = {key.lower(): value for key, value in _typed(nodes, dict[str, msgspec.Raw], "Nodes").items()}
    # First as what they must be: a list of anything else fails at its first item, and is never held.
    listed_nodes = _typed(listed.get("items"), list[_Node] | None, "Nodes.items") or []
    names = _named([node.metadata.name for node in listed_nodes], "Nodes.items")
    items = _typed(listed.get("items"), list[msgspec.Raw] | None, "Nodes.items") or []
    return Arguments(pod, names, tuple(items))


def preempt_arguments(body: bytes) -> PreemptArguments:
    """The body of /preempt, with whole pods or with their uids alone."""
    keys = _top(body)
    pod = _pod(keys)
    for key in ("NodeNameToMetaVictims", "NodeNameToVictims"):
        nodes = _typed(keys.get(key.lower()), dict[str, msgspec.Raw] | None, key)
        if nodes is not None:
            _named(list(nodes), key)
            return PreemptArguments(pod, {node: _victims(raw, f"{key}.{node}") for node, raw in nodes.items()})
    raise BadRequest("the request has neither NodeNameToMetaVictims nor NodeNameToVictims")


def questions(body: bytes, most: int) -> tuple[Question, ...]:
    """Pods that are only asked about: {"questions": [{"pods": [v1.Pod], "nodes": [names]}]}."""
    parsed = []
    for at, raw in enumerate(_typed(_top(body).get("questions"), list[dict[str, msgspec.Raw]], "questions")):
        names = _typed(raw.get("nodes"), list[str] | None, f"questions[{at}].nodes")
        pods = _typed(raw.get("pods"), list[PodBody], f"questions[{at}].pods")
        parsed.append(
            Question(tuple(map(row, pods)), None if names is None else _named(names, f"questions[{at}].nodes"))
        )
    count = sum(len(question.pods) for question in parsed)
    if not 0 < count <= most:
        raise BadRequest(f"questions: 1 to {most} pods can be asked about at once, not {count}")
    return tuple(parsed)


def filter_answer(call: Arguments, refusals: FilterRefusals) -> bytes:
    """All nodes but the refused, in the form of the request: names, or the same Node objects byte for byte."""
    kept = [name not in refusals.failed and name not in refusals.hopeless for name in call.names]
    nodes = names = None
    if call.items is None:
        names = [name for name, keep in zip(call.names, kept, strict=True) if keep]
    else:
        items = [item for item, keep in zip(call.items, kept, strict=True) if keep]
        nodes = {"metadata": {}, "items": items}
    return msgspec.json.encode(
        {
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": dict(refusals.failed),
            "FailedAndUnresolvableNodes": dict(refusals.hopeless),
            "Error": "",
        }
    )


def plain(body: bytes) -> bool:
    """Whether the call is about nodes by name for a pod that can't have opted in: then it need not be decoded."""
    return len(body) <= PLAIN_BYTES and OPT_IN_KEY not in body


_PASSED = b'{"Nodes":null,"NodeNames":%b,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def every_node(body: bytes) -> bytes:
    """The answer to filter where nothing is refused: all nodes, in the form of the request. BadRequest."""
    names = _raw_names(_top(body))
    return filter_answer(arguments(body), FilterRefusals()) if names is None else _PASSED % names


def several_nodes(body: bytes) -> bytes | None:
    """All nodes, for a pod that is decoded all the same; None where no choice of nodes is offered, or Node objects
    are.
    """
    names = _raw_names(keys := _top(body))
    if names is None or b"," not in names:
        return None
    _pod(keys)
    return _PASSED % names


def _raw_names(keys: Mapping[str, msgspec.Raw]) -> bytes | None:
    """The list of names as it was sent; None where the call is another."""
    names = bytes(keys.get("nodenames") or b"")
    return names if "pod" in keys and names.startswith(b"[") else None


def no_scores(body: bytes) -> bytes:
    """BadRequest where the body is none of kube-scheduler's."""
    if not _top(body).keys() >= {"pod", "nodenames"}:
        arguments(body)
    return NO_SCORES


NO_SCORES = b"[]"
"""The answer to /prioritize for a pod that has not opted in: kube-scheduler counts a node that is not named as 0."""


def prioritize_answer(names: Iterable[str], scores: Iterable[int]) -> bytes:
    """The bare list of HostPriority; scores 0..10."""
    return msgspec.json.encode([*map(_HostPriority, names, scores)])


def preempt_answer(victims: Mapping[str, Victims]) -> bytes:
    """Always by uid: that is the only form kube-scheduler reads."""
    return msgspec.json.encode(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in victim.pods], "NumPDBViolations": victim.budgets_broken}
                for node, victim in victims.items()
            }
        }
    )


def _top(body: bytes) -> dict[str, msgspec.Raw]:
    """The top-level keys in lower case; where a key comes twice, the last one counts, as in Go."""
    if len(body) > VALUES and (values := body.count(b",")) > VALUES:
        raise BadRequest(f"the request: {values} values are over the bound of {VALUES}")
    try:
        keys = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as bad:
        raise BadRequest(f"the request is not a JSON object: {bad}") from bad
    except msgspec.DecodeError as bad:
        raise BadRequest(f"the request is not JSON: {bad}") from bad
    except UnicodeDecodeError as bad:
        raise BadRequest(f"the request is not JSON: it is not UTF-8: {bad.reason}") from bad
    except RecursionError as bad:
        raise BadRequest("the request is not JSON: it is nested too deeply") from bad
    return {key.lower(): value for key, value in keys.items()}


def _within(path: str, raw: msgspec.Raw | None, most: int) -> None:
    if raw is not None and len(bytes(raw)) > most:
        raise BadRequest(f"{path}: {len(bytes(raw))} bytes are over the bound of {most}")


def _typed(raw: msgspec.Raw | None, kind: Any, path: str) -> Any:
    """The value at a path of the request; a key that is absent counts as null."""
    try:
        return msgspec.json.decode(raw if raw is not None else b"null", type=kind)
    except msgspec.DecodeError as bad:
        text, _, inner = str(bad).partition(" - at `$")
        raise BadRequest(f"{path}{inner.removesuffix('`')}: {text}") from bad
    except UnicodeDecodeError as bad:
        raise BadRequest(f"{path}: not UTF-8: {bad.reason}") from bad
    except RecursionError as bad:
        raise BadRequest(f"{path}: nested too deeply") from bad


_checked: dict[str, str] = {}
"""Names that are names, each as the interpreter's one object, as views have them: it is found faster than an equal."""


def _named(names: Sequence[str], path: str) -> tuple[str, ...]:
    if len(names) > NODES:
        raise BadRequest(f"{path}: {len(names)} nodes are over the bound of {NODES}")
    known = tuple(map(_checked.get, names))
    if None in known:
        for at, name in enumerate(names):
            if not names_rules.is_object(name):
                raise BadRequest(f"{path}[{at}]: {shown(name)} is no name that the API server takes")
        if len(_checked) > NODES:
            _checked.clear()
        _checked.update((name, name) for name in map(intern, names))
        return tuple(map(_checked.__getitem__, names))
    return known  # type: ignore[return-value]  # None is not in it


def _pod(keys: Mapping[str, msgspec.Raw]) -> PodRow:
    if "pod" not in keys:
        raise BadRequest("the request has no Pod")
    _within("Pod", keys["pod"], POD_BYTES)
    return row(_typed(keys["pod"], PodBody, "Pod"))


def _victims(raw: msgspec.Raw, path: str) -> Victims:
    """`{"Pods": [{"UID"}], "NumPDBViolations"}`, or with whole pods: `{"pods": [Pod], "numPDBViolations"}`."""
    keys = {key.lower(): value for key, value in (_typed(raw, dict[str, msgspec.Raw] | None, path) or {}).items()}
    uids = []
    for at, pod in enumerate(_typed(keys.get("pods"), list[dict[str, msgspec.Raw]] | None, f"{path}.Pods") or []):
        where = f"{path}.Pods[{at}]"
        fields = {key.lower(): value for key, value in pod.items()}
        if "uid" in fields:
            uids.append(_typed(fields["uid"], str, f"{where}.UID"))
        else:
            uids.append(_typed(fields.get("metadata"), _Uid, f"{where}.metadata").uid)
    return Victims(tuple(uids), _typed(keys.get("numpdbviolations"), int | None, f"{path}.NumPDBViolations") or 0)


class _Uid(msgspec.Struct):
    uid: str
