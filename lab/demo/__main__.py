"""`make demo`: some shops rolled out at the same time over a few well-known machines, with numakin and without."""

from __future__ import annotations

import argparse
import json
import select
import signal
import sys
import tempfile
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from random import Random

from rich.console import Console

from lab.demo import baselines, show, traffic
from lab.demo.baselines import BASELINES
from lab.demo.cluster import Cluster
from lab.demo.locality import Place, locality
from lab.demo.shop import SHOPS, Pod, arrivals
from lab.standins.machines.in_memory import in_memory
from lab.standins.patience import PATIENCE_S
from lab.standins.runtime.records import Container
from lab.standins.scheduler.binding import Binder
from lab.standins.scheduler.cache import Room
from lab.standins.scheduler.extender_client import ExtenderClient
from lab.standins.scheduler.scheduler import Choice, Scheduler
from numakin.process.signals import received

MACHINES = {"xeon": "xeon-8380", "epyc": "epyc-7763-nps4", "kunpeng": "kunpeng-920-4s"}

MOST_TIMES = 6
"""More replicas than that do not fit on the machines."""


def main() -> int:
    options = _options()
    console = Console(stderr=options.json)
    with tempfile.TemporaryDirectory(prefix="numakin-demo.", dir=in_memory()) as folder:
        try:
            with Cluster(Path(folder), MACHINES) as cluster:
                return _played(console, cluster, options)
        except TimeoutError as error:
            console.print(f"numakin demo: {error}")
            for log in sorted(Path(folder).glob("*.log")):
                console.print(f"--- {log.name}", *log.read_text().splitlines()[-10:], sep="\n", markup=False)
            return 1


def _played(console: Console, cluster: Cluster, options: argparse.Namespace) -> int:
    show.machines(console, cluster, MACHINES)
    pods = arrivals(options.seed, options.replicas)
    console.print(
        f"{len(pods)} pods of {len(SHOPS)} shops, created in random order; all that they say is their shop's name"
    )
    uids: dict[Pod, str] = {}
    places = _rolled_out(console, cluster, pods, uids, options)
    machines = {name: node.machine for name, node in cluster.nodes.items()}
    ways = {"numakin": places} | {
        baseline.name: baselines.placed(machines, pods, baseline, options.seed) for baseline in BASELINES
    }
    if options.verbose:
        show.landed(console, places)
        show.in_detail(console, ways, BASELINES)
    show.nominated(console, [cluster.explain(pod) for pod in pods])
    show.compared(console, ways, BASELINES)
    if options.json:
        print(json.dumps({way: locality(found, SHOPS).numa for way, found in ways.items()}))
    if options.keep:
        _replayed(cluster, places, uids)
        _kept(console, cluster, pods[0])
    else:
        console.print("next: make demo ARGS=--keep     a web page, and why each pod is where it is", highlight=False)
    return 0


def _rolled_out(
    console: Console, cluster: Cluster, pods: list[Pod], uids: dict[Pod, str], options: argparse.Namespace
) -> dict[Pod, Place]:
    """One after the other is scheduled, while those before are still being bound and started. uids: is filled."""
    client, lots = ExtenderClient(cluster.extender, PATIENCE_S), Random(options.seed)  # noqa: S311 - lots, no secret
    machines = {name: node.machine for name, node in cluster.nodes.items()}
    scheduler = Scheduler(baselines.rooms(machines), client, random=lots)
    started: list[tuple[Pod, Choice, Future[Container]]] = []
    with Binder(lots) as binder:
        for pod in pods:
            body = cluster.created(pod)
            choice = scheduler.schedule(body, pod.workload, Room(pod.service.cpu_milli, pod.service.memory))
            uids[pod] = body["metadata"]["uid"]
            started.append((pod, choice, binder.bind(partial(_bound_and_run, cluster, pod, uids[pod], choice.node))))
    client.close()
    places = {}
    for number, (pod, choice, container) in enumerate(started, start=1):
        places[pod] = Place(choice.node, cluster.where(choice.node, container.result()))
        if options.verbose:
            show.landing(console, number, pod, places[pod], choice.extender)
    return places


def _bound_and_run(cluster: Cluster, pod: Pod, uid: str, node: str) -> Container:
    cluster.api.bind(pod.name, node, pod.shop)
    return cluster.run(pod, uid, node)


def _replayed(cluster: Cluster, places: dict[Pod, Place], uids: dict[Pod, str]) -> None:
    """From now on every enforcer sees the shops' calls; placing them was done without."""
    for name, node in cluster.nodes.items():
        file = node.folder / "traffic.jsonl"
        traffic.record(places, uids, name, file)
        cluster.restart(name, file)


def _kept(console: Console, cluster: Cluster, pod: Pod) -> None:
    """Until the user ends it."""
    enough = received((signal.SIGINT, signal.SIGTERM)).detach()  # another one may come during the end
    url = f"http://{cluster.web}"
    plugin = f"{_program('kubectl-numakin')} %s --extender {url}"
    shown = {
        "web page": f"{url}/",
        "map": plugin % "map",
        "why there": plugin % f"explain pod {pod.name} -n {pod.shop}",
        "traffic": plugin % "top -A",
        "as JSON": f"curl '{url}/api/v1/explain?namespace={pod.shop}&pod={pod.name}'",
        **{
            f"node {name}": f"{_program('numakin-enforcer')} status --run-dir {node.run_dir}"
            for name, node in cluster.nodes.items()
        },
    }
    console.print(
        "\nleft running; Ctrl-C ends it. The enforcers were started anew, and see the shops' calls for an hour,",
        "replayed; they show in a quarter of a minute.",
    )
    for what, line in shown.items():
        console.print(f"{what:13} {line}", soft_wrap=True, highlight=False)
    select.select([enough], [], [])


def _program(name: str) -> str:
    """A program of the environment that the demo runs in, as one would type it here."""
    path = Path(sys.executable).with_name(name)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _positive(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= MOST_TIMES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_TIMES}")
    return int(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo ARGS=...", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running and print the addresses")
    parser.add_argument(
        "--verbose", action="store_true", help="print each pod's place and scores, and each shop's share"
    )
    parser.add_argument("--json", action="store_true", help="print the localities as JSON on stdout")
    parser.add_argument("--seed", type=int, default=1, help="another order of arrivals (default: 1)")
    parser.add_argument(
        "--replicas", type=_positive, default=1, metavar="N", help="N times as many of each service (default: 1)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
