"""The tables of `docs/metrics.md`: every metric of either program, as its registry has it.

Both programs are put together here as they are in their processes, but nothing is started: metrics are asked of what
is empty. What is written by hand in the page stays; a table is what lies between its two marks.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from enforcer.observer.endpoint.attachment import Attachment
from enforcer.observer.endpoint.counters import Counters
from enforcer.observer.endpoint.pages import application
from enforcer.report.mirror import Mirror
from extender.config import load
from extender.main import Program
from numakin.process.threads import Threads

NEVER_ASKED = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "c",
}
"""An API server that is never asked."""

TABLE = re.compile(r"(<!-- (extender|enforcer): made by `make reference` -->\n).*?(<!-- end -->)", re.DOTALL)


ANY_PROCESS = "process_"
"""What Prometheus' own client tells of any process."""


class Row(NamedTuple):
    """One metric. name: as people query it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def page(before: str) -> str:
    """The page with its tables as the code has them."""
    tables = {"extender": table(extender()), "enforcer": table(enforcer())}
    return TABLE.sub(lambda match: f"{match[1]}{tables[match[2]]}{match[3]}", before)


def table(registry: CollectorRegistry) -> str:
    rows = sorted({row for row in _rows(registry) if not row.name.startswith(ANY_PROCESS)})
    lines = [f"| `{row.name}` | {row.kind}{_by(row.labels)} | {row.text} |" for row in rows]
    return "\n".join(["| name | kind | meaning |", "|---|---|---|", *lines, ""])


def _by(labels: tuple[str, ...]) -> str:
    return f" by {', '.join(labels)}" if labels else ""


def enforcer() -> CollectorRegistry:
    """As the observer has them with a certificate of its own."""
    counters = Counters()
    health: Any = SimpleNamespace(
        mirror=Mirror(), counters=counters, watching=None, threads=Threads(lambda _failure: None),
        attachment=Attachment(), census=None, memory=None, cpu_use=None, ready=(False, ""), streaming=0, skewed=0,
    )  # fmt: skip
    application(health)
    counters.certificate(SimpleNamespace(expires=0.0))  # type: ignore[arg-type]
    return counters.registry


def extender() -> CollectorRegistry:
    """As the program has them with an API server."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(NEVER_ASKED))
        program = Program(load(["--kubeconfig", str(kubeconfig)], {}))
    assert program._kube is not None
    program.metrics.gauges(program._watched(program._kube).gauges)
    return program.metrics.registry


def _rows(registry: CollectorRegistry) -> Iterator[Row]:
    for part in registry._collector_to_names:
        own = getattr(part, "_labelnames", None)
        for family in part.collect():
            labels = own if own is not None else getattr(family, "_labelnames", ())
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Row(name, family.type, tuple(labels), family.documentation)
