"""numakin as it is in a cluster: a real extender, a real enforcer on an embedded runtime, the stand-in API server, and
the objects of an installation, so that programs can be run in the enforcer's pod.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.demo.cluster import Cluster
from lab.standins.apiserver import ApiServer
from tests.enforcer.command import command
from tests.numakin.kubectl.asking import Told, ask

NODE, NAMESPACE = "node-1", "numakin"


@dataclass(slots=True)
class Installed:
    cluster: Cluster
    folder: Path
    started: list[list[str]]
    """What was run in the enforcer's pod."""

    @property
    def api(self) -> ApiServer:
        return self.cluster.api

    def ask(self, *words: str, token: str = "admin-token", stdin: str | None = None) -> Told:
        config = self.api.kubeconfig(self.folder / "user", token)
        return ask(*words, KUBECONFIG=str(config), stdin=stdin)


@contextmanager
def installed(folder: Path) -> Iterator[Installed]:
    # A runtime that says what came of a release: its containers have no cgroups that would.
    with Cluster(folder, {NODE: "xeon-8380"}, nri_version="0.12.1") as cluster:
        api, node = cluster.api, cluster.nodes[NODE]
        api.create("v1", "namespaces", {"metadata": {"name": NAMESPACE}})
        api.create("v1", "services", {"metadata": {"name": "numakin-extender"}}, NAMESPACE)
        url = f"http://{cluster.web}"
        api.behind.backends["services", NAMESPACE, "numakin-extender", "web"] = url
        api.behind.backends["pods", NAMESPACE, "numakin-extender-0", "8083"] = url
        add_pod(
            api,
            "numakin-extender",
            0,
            "extender",
            ["--web-listen=0.0.0.0:8083"],
            [{"name": "web", "containerPort": 8083}],
        )
        options = [
            f"--run-dir={node.run_dir}",
            f"--sysfs={node.folder / 'sys'}",
            f"--nri-socket={node.folder / 'nri.sock'}",
        ]
        add_pod(api, "numakin-enforcer", 0, "enforcer", ["run", "--node-name=$(NODE_NAME)", *options], [])
        result = Installed(cluster, folder, [])

        def program(words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
            result.started.append([*words])
            done = command(*words[1:])
            return subprocess.CompletedProcess(words, done.returncode, done.stdout.encode(), done.stderr.encode())

        api.behind.programs[NAMESPACE, "numakin-enforcer-0"] = program
        yield result


def add_pod(
    api: ApiServer, app: str, number: int, container: str, args: list[str], ports: list[dict[str, object]]
) -> None:
    made = {"name": container, "image": f"{app}:1", "args": args, "ports": ports}
    labels = {"app.kubernetes.io/name": app}
    api.create_pod(f"{app}-{number}", NAMESPACE, labels=labels, containers=[made], nodeName=NODE)
    api.set_phase(f"{app}-{number}", "Running", NAMESPACE)
