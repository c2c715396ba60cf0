"""A real extender process that starts beside an API server with so many pods: until it is ready, and what it takes.

    python -m benchmarks.extender.listing                        10,000, 50,000 and 150,000 pods
    python -m benchmarks.extender.listing --pods 150000 --json

The API server is the stand-in, in a process of its own; its pods are as large as real ones are (some 6 KB of JSON, most
of it managed fields), one in five has opted in, and each Deployment has 30 replicas.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.cluster.control.control_plane import ControlPlane
from benchmarks.cluster.control.extender import MeasuredExtender, within
from benchmarks.cluster.nodes.remote import Remote
from lab.standins.apiserver.objects import pods as pod_objects

REPLICAS = 30
OPTED_IN = 5
"""One pod in so many."""

NODES = 5_000
PATIENCE_S = 900.0
FIELDS_BYTES = 3_500
"""Of managedFields, as a kubelet and a controller leave them."""


class Crowded(ControlPlane):
    """The API server with these pods; they are put into its store, as validating each would take hours."""

    def __init__(self, kubeconfig: Path, pods: int) -> None:
        super().__init__(kubeconfig, [f"node-{at:05}" for at in range(min(NODES, 1 + pods // REPLICAS))])
        template = self._api.create_pod("template", "default", containers=_containers())
        self._api.delete("v1", "pods", "template", "default", grace_s=0)
        for at in range(pods):
            body = _pod(template, at)
            stored = self._api.store.put(pod_objects.KIND, ("default", body["metadata"]["name"]), body)
            _ = stored.item_text  # encoded now, so that its answers come as fast as they can


def _containers() -> list[dict[str, Any]]:
    environment = [{"name": f"SETTING_{at}", "value": f"a value of usual length {at}"} for at in range(20)]
    mounts = [{"name": f"volume-{at}", "mountPath": f"/var/lib/app/{at}"} for at in range(6)]
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    return [
        {"name": "main", "image": "example.invalid/app:1", "env": environment, "volumeMounts": mounts,
         "resources": resources}
    ]  # fmt: skip


def _pod(template: dict[str, Any], at: int) -> dict[str, Any]:
    app, node = f"app-{at // REPLICAS}", f"node-{at % NODES:05}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d4f8c7b9", "uid": f"rs-{at // REPLICAS}",
             "controller": True, "blockOwnerDeletion": True}  # fmt: skip
    pod = {**template, "spec": {**template["spec"], "nodeName": node}}
    pod["metadata"] = {
        **copy.copy(template["metadata"]),
        "name": f"{app}-5d4f8c7b9-{at:06}",
        "uid": f"00000000-0000-4000-8000-{at:012}",
        "labels": {"app": app, "pod-template-hash": "5d4f8c7b9"},
        "annotations": {"group.numakin.io": app} if at // REPLICAS % OPTED_IN == 0 else {"checksum/config": "a" * 64},
        "ownerReferences": [owner],
        "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": "x" * FIELDS_BYTES}}],
    }
    ip = f"10.{at >> 16 & 255}.{at >> 8 & 255}.{at & 255}"
    pod["status"] = {**template["status"], "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}
    return pod


def listed(address: str) -> bool:
    """Whether all is listed, and the extender says that it is ready."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        synced = b'numakin_extender_watch_synced{resource="pods"} 1.0' in answer.read()
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=60) as answer:
            return synced and answer.status == 200
    except urllib.error.HTTPError:
        return False


def measured(pods: int) -> dict[str, float]:
    """Seconds from the start of the process to ready, its CPU seconds, its peak RSS in MiB."""
    with tempfile.TemporaryDirectory(prefix="numakin-listing.") as name:
        folder = Path(name)
        server = Remote(Crowded, folder / "kubeconfig", pods)
        try:
            server.call("url")
            extender = MeasuredExtender(folder, ("--kubeconfig", str(folder / "kubeconfig")))
            begin = time.monotonic()
            try:
                extender.start()
                # All is listed before anything is watched; asking the extender meanwhile would be work for it.
                if not server.call("watched", PATIENCE_S) or not within(lambda: listed(extender.web), PATIENCE_S):
                    raise TimeoutError(f"not ready after {PATIENCE_S:g} s")
                seconds = time.monotonic() - begin
                cpu_s, peak = extender.usage()
            finally:
                extender.end()
        finally:
            server.close()
    return {"seconds": seconds, "cpu_s": cpu_s, "peak_mib": peak / (1 << 20)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extender.listing", description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, nargs="+", default=[10_000, 50_000, 150_000])
    parser.add_argument("--json", action="store_true", help="for a program")
    options = parser.parse_args()
    results = {}
    for pods in options.pods:
        results[pods] = measured(pods)
        if not options.json:
            figures = ", ".join(f"{name} {value:.1f}" for name, value in results[pods].items())
            print(f"{pods:>7} pods: {figures}", flush=True)
    if options.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
