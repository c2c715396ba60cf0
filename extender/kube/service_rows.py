"""Services from the API server's JSON."""

from __future__ import annotations

import msgspec

from extender.kube.rows import Metadata
from extender.state.pods import ServiceRow


class _ServiceSpec(msgspec.Struct):
    type: str = ""
    selector: dict[str, str] | None = None


class ServiceObject(msgspec.Struct):
    """A Service as the API server sends it, reduced."""

    metadata: Metadata
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)


def service_row(service: ServiceObject) -> ServiceRow:
    """Without a selector where the name leads out of the cluster."""
    spec = service.spec
    selector = spec.selector if spec.type != "ExternalName" else None
    return ServiceRow(service.metadata.namespace, service.metadata.name, selector or {})
