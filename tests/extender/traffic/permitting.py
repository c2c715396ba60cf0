"""Pods and NetworkPolicies of a shop, and what is expected by them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from extender.kube.policy_rows import policies
from extender.state.pods import Changes, OwnerRow, PodRow
from extender.traffic.permitted import PERMITTED
from extender.traffic.policies import PolicyRow
from extender.traffic.priors import SHARE, UNSEEN, Priors
from numakin.placement.traffic.mentions import mentions

WEAK = SHARE * PERMITTED * UNSEEN
EVERYBODY: dict[str, Any] = {}


def pod(name: str, namespace: str = "shop", names: str = "", **labels: str) -> PodRow:
    """Of a Deployment, with the label `app` and these."""
    return PodRow(
        uid=f"{namespace}-{name}",
        namespace=namespace,
        name=f"{name}-0",
        annotations={"group.numakin.io": "auto"},
        owner=OwnerRow("Deployment", name),
        labels={"app": name, **labels},
        mentions=mentions(namespace, [names]),
    )


def of(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


def app(name: str) -> dict[str, Any]:
    return {"podSelector": of(app=name)}


def policy(selector: Mapping[str, Any], namespace: str = "shop", name: str = "", **spec: Any) -> PolicyRow:
    """As it is read of a list's item."""
    metadata = {"name": name or json.dumps([selector, spec]), "namespace": namespace}
    body = {"metadata": metadata, "spec": {"podSelector": selector, **spec}}
    (row,) = policies().page(json.dumps({"metadata": {}, "items": [body]}).encode()).rows
    return row


def priors(pods: Iterable[PodRow], *rows: PolicyRow) -> Priors:
    made = Priors()
    made.pods(Changes(tuple(pods)))
    made.policies(Changes(rows, whole=True))
    return made


def edges(expected: Priors, pods: Iterable[PodRow], seen: Mapping[tuple[str, str], float] = {}, now: float = 0.0):
    """Weights by pair of names, each `app` or, outside of the shop, `NAMESPACE/app`."""
    weights = expected.weights(seen, [row.workload for row in pods], now)
    return {
        tuple(end.replace("/Deployment/", "/").removeprefix("shop/") for end in pair): w for pair, w in weights.items()
    }


SHOP = tuple(pod(name) for name in ("web", "cart", "redis", "other"))
