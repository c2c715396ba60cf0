"""The kinds of others that the manifests use, as far as they use them: fields that cert-manager's and the Prometheus operator's own
definitions have, and no others.
"""

from __future__ import annotations

from typing import Any

TEXT, FLAG, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
ISSUER_REF = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "kind": TEXT, "group": TEXT}}


def _texts(*allowed: str) -> dict[str, Any]:
    return {"type": "array", "items": {**TEXT, **({"enum": list(allowed)} if allowed else {})}}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


CERTIFICATE = _object(
    ("secretName", "issuerRef"),
    secretName=TEXT, issuerRef=ISSUER_REF, isCA=FLAG, commonName=TEXT, duration=TEXT, renewBefore=TEXT, dnsNames=_texts(),
    privateKey=_object(algorithm={**TEXT, "enum": ["RSA", "ECDSA", "Ed25519"]}, size=NUMBER, rotationPolicy=TEXT),
    usages=_texts("server auth", "client auth", "cert sign", "digital signature", "key encipherment"),
)  # fmt: skip
ISSUER = _object(selfSigned=_object(), ca=_object(("secretName",), secretName=TEXT))
POD_MONITOR = _object(
    ("selector",),
    selector=_object(matchLabels={"type": "object", "additionalProperties": TEXT}),
    podMetricsEndpoints={
        "type": "array",
        "items": _object(port=TEXT, path=TEXT, interval=TEXT, scheme={**TEXT, "enum": ["http", "https"]}),
    },
)

RULE = _object(
    ("expr",),
    alert=TEXT, record=TEXT, expr=TEXT, labels={"type": "object", "additionalProperties": TEXT},
    annotations={"type": "object", "additionalProperties": TEXT}, **{"for": TEXT},
)  # fmt: skip
PROMETHEUS_RULE = _object(
    groups={
        "type": "array",
        "items": _object(("name",), name=TEXT, interval=TEXT, rules={"type": "array", "items": RULE}),
    }
)

SCHEMAS: dict[tuple[str, str], dict[str, Any]] = {
    ("cert-manager.io/v1", "Certificate"): _object(("spec",), spec=CERTIFICATE),
    ("cert-manager.io/v1", "Issuer"): _object(("spec",), spec=ISSUER),
    ("monitoring.coreos.com/v1", "PodMonitor"): _object(("spec",), spec=POD_MONITOR),
    ("monitoring.coreos.com/v1", "PrometheusRule"): _object(("spec",), spec=PROMETHEUS_RULE),
}
