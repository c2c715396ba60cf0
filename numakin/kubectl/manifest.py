"""Manifests as people write them, made into the pods that their controllers would create."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from numakin.kubectl.errors import UsageError

MOST_PODS = 100
"""The extender takes no more at once."""

LARGEST_FILE = 16 << 20

REPLICATED = {
    "Deployment": "replicas", "ReplicaSet": "replicas", "ReplicationController": "replicas", "StatefulSet": "replicas",
    "Job": "parallelism",
}  # fmt: skip
"""Controllers, and the field that says how many pods run at once."""

KINDS = ("Pod", "CronJob", *REPLICATED)
"""Of which pods are known."""

MOST = {"Job": ("completions",)}
"""Fields that bound it."""

HASH = "numakin0plan"
"""In place of the hash that names a Deployment's ReplicaSet: by it the pods' workload is the Deployment."""

Pod = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """As kubectl has it: what looks like a time is a text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class' own
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def pods(name: str, namespace: str) -> list[Pod]:
    """Of a file, `-` being standard input. UsageError when it can't be read, or holds no pods.

    namespace: for objects that name none.
    """
    listed = list(islice((pod for each in _objects(name) for pod in _of(each, namespace, name)), MOST_PODS + 1))
    if not listed:
        raise UsageError(f"{name}: no pods in it: a Pod, {', '.join(REPLICATED)} or CronJob is wanted")
    if len(listed) > MOST_PODS:
        raise UsageError(f"{name}: more than {MOST_PODS} pods; plan a part of them, or with fewer replicas")
    return listed


def _objects(name: str) -> Iterator[Mapping[str, Any]]:
    try:
        if name == "-":
            content = sys.stdin.buffer.read(LARGEST_FILE)
        else:
            with Path(name).open("rb") as file:
                content = file.read(LARGEST_FILE)
        documents = list(yaml.load_all(content, _Loader))  # by its own encoding, whatever the locale's is
    except OSError as bad:
        raise UsageError(f"{name}: {bad.strerror or bad}") from bad
    except yaml.MarkedYAMLError as bad:
        line = f" in line {bad.problem_mark.line + 1}" if bad.problem_mark else ""
        raise UsageError(f"{name}: not YAML: {bad.problem}{line}") from bad
    except (yaml.YAMLError, ValueError, RecursionError) as bad:
        raise UsageError(f"{name}: not YAML: {str(bad).splitlines()[0]}") from bad
    for document in filter(None, documents):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise UsageError(f"{name}: holds something that is no Kubernetes object: it has no kind")
        yield from _listed(document, name)


def _listed(document: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    """The object, or those of a list: of any, or, as the API server answers, of one kind, which they need not name."""
    kind = str(document.get("kind"))
    of = kind.removesuffix("List")
    if of == kind or of not in ("", *KINDS):
        yield document
        return
    items = document.get("items") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UsageError(f"{name}: its {kind} has items that are no objects")
    for item in items:
        yield from _listed({"kind": of, **item} if of else item, name)


def _of(each: Mapping[str, Any], namespace: str, name: str) -> Iterator[Pod]:
    """The pods of one object; none for kinds that have none."""
    kind = str(each.get("kind"))
    if kind not in KINDS:
        return
    try:
        metadata = each["metadata"]
        own, where = str(metadata["name"]), str(metadata.get("namespace") or namespace)
        if kind == "Pod":
            yield {"metadata": {**metadata, "namespace": where}, "spec": _spec(each)}
        elif kind == "CronJob":
            job = {
                "kind": "Job",
                "metadata": {**metadata, "name": f"{own}-next"},
                "spec": each["spec"]["jobTemplate"]["spec"],
            }
            yield from _of(job, namespace, name)
        else:
            spec = _spec(each)
            for at in range(_at_once(spec, kind, f"{name}: {kind} {own}")):
                yield _replica(kind, own, where, spec["template"], at)
    except (KeyError, TypeError, AttributeError, ValueError) as bad:
        missing = f"it has no {bad.args[0]}" if isinstance(bad, KeyError) else "a field has another type than it should"
        raise UsageError(f"{name}: this {kind} can't be planned: {missing}") from bad


def _at_once(spec: Mapping[str, Any], kind: str, which: str) -> int:
    """Its pods that run at the same time. UsageError where a field is no whole number."""
    fields = (REPLICATED[kind], *MOST.get(kind, ()))
    said: dict[str, int] = {REPLICATED[kind]: 1} | {
        field: spec[field] for field in fields if spec.get(field) is not None
    }
    for field, count in said.items():
        if not isinstance(count, int) or count < 0:
            raise UsageError(f"{which}: {field} must be a whole number, not {count!r}")
    return min(said.values())


def _replica(kind: str, owner: str, namespace: str, template: Mapping[str, Any], at: int) -> Pod:
    metadata = dict(template.get("metadata") or {})
    labels = dict(metadata.get("labels") or {})
    owned_by = {"kind": kind, "name": owner, "uid": owner, "controller": True}
    pod = f"{owner}-{at}" if kind == "StatefulSet" else f"{owner}-{HASH}-{at}"
    if kind == "Deployment":
        labels["pod-template-hash"] = HASH
        owned_by |= {"kind": "ReplicaSet", "name": f"{owner}-{HASH}"}
    metadata |= {"name": pod, "namespace": namespace, "uid": f"plan/{namespace}/{pod}", "labels": labels}
    return {"metadata": metadata | {"ownerReferences": [owned_by]}, "spec": _spec(template)}


def _spec(of: Mapping[str, Any]) -> dict[str, Any]:
    """KeyError when it is left empty, as when there is none; TypeError when it is no object."""
    spec = of["spec"]
    if spec is None:
        raise KeyError("spec")
    if not isinstance(spec, dict):
        raise TypeError("spec")
    return spec
