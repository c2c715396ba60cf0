"""`make cluster`: a real control plane with numakin on it, and an example that talks; runs until ^C."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from pathlib import Path

from lab.cluster.binaries import NoKubernetes, binaries
from lab.cluster.cluster import Cluster, Terms
from lab.cluster.processes import NotUp
from lab.standins.machines import MACHINES
from numakin.process.signals import received

EXAMPLE = Path(__file__).parent / "example.yaml"
SHOPS, PODS_OF_A_SHOP = ("berlin", "lima"), 4
KINDS = ("xeon-8380", "epyc-7763-nps2", "kunpeng-920-4s")


def main() -> None:
    options = _options().parse_args()
    try:
        programs = binaries(build=True)
        _say(f"Kubernetes 1.{programs.minor} of {programs.folder}")
        with Cluster(
            programs,
            Terms(_machines(options.nodes), extenders=options.extenders, scheduler="strict" if options.strict else ""),
        ) as up:
            _deployed(up)
            _shown(up)
            _until_signal()
            _say("ending")
    except (NoKubernetes, NotUp, TimeoutError) as bad:
        print(f"cluster: {bad}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make cluster", description="A real Kubernetes on loopback, with numakin and an example; until ^C."
    )
    parser.add_argument("--nodes", type=int, default=3, help="nodes, each with an enforcer (default: 3, at most 20)")
    parser.add_argument("--extenders", type=int, default=1, help="replicas of the extender (default: 1)")
    parser.add_argument("--strict", action="store_true", help="with the configuration that may refuse nodes")
    return parser


def _machines(nodes: int) -> dict[str, str]:
    assert all(kind in MACHINES for kind in KINDS)
    return {f"node-{number}": KINDS[number % len(KINDS)] for number in range(nodes)}


def _deployed(cluster: Cluster) -> None:
    _say("deploying the example (lab/cluster/example.yaml)")
    cluster.kubectl("apply", "-f", str(EXAMPLE))
    cluster.until(lambda: all(_runs(cluster, shop) for shop in SHOPS), "the example's pods to run")


def _runs(cluster: Cluster, shop: str) -> bool:
    pods = cluster.pods(shop)
    return len(pods) == PODS_OF_A_SHOP and all(pod["status"]["phase"] == "Running" for pod in pods)


def _shown(cluster: Cluster) -> None:
    for namespace in SHOPS:
        for pod in cluster.pods(namespace):
            node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
            print(f"  {namespace}/{pod['metadata']['name']:<30} {node:<8} NUMA node {cluster.nodes[node].where(uid)}")
    print(f"\n{commands(cluster, cluster.pods(SHOPS[0])[0]['metadata']['name'])}\n")
    _say("running until ^C")


def commands(cluster: Cluster, pod: str) -> str:
    """What to type next. pod: a name in the first of the example's namespaces."""
    extender = f"http://{cluster.extenders[0].web}"
    own = os.path.relpath(Path(sys.executable).with_name("kubectl-numakin"))
    return f"""\
  kubeconfig   export KUBECONFIG={cluster.plane.kubeconfig}
  pods         kubectl get pods -A -o wide
  groups       kubectl get affinitygroups -A
  why there    {own} explain pod {pod} -n {SHOPS[0]} --extender {extender}
  map          {own} map --extender {extender}
  web page     {extender}/
  metrics      curl {extender}/metrics
  logs         {cluster.folder}"""


def _until_signal() -> None:
    signals = received((signal.SIGINT, signal.SIGTERM)).detach()  # another one may come during the end
    select.select([signals], [], [])


def _say(text: str) -> None:
    print(f"cluster: {text}", flush=True)


if __name__ == "__main__":
    main()
