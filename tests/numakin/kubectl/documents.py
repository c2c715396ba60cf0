"""Manifests to ask about, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml


def deployment(replicas: Any = 3, cpu: str = "1", annotations: dict[str, str] | None = None) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    template = {
        "metadata": {"annotations": {"group.numakin.io": "boutique"} if annotations is None else annotations},
        "spec": {"containers": [{"name": "main", "resources": resources}]},
    }
    spec = {"replicas": replicas, "selector": {}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def written(tmp_path: Path):
    def write(*objects: object) -> str:
        path = tmp_path / "manifest.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    return write
