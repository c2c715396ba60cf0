"""What a person sees of the demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.demo.baselines import Baseline
from lab.demo.cluster import Cluster
from lab.demo.locality import NOWHERE, Place, locality
from lab.demo.shop import SERVICES, SHOPS, Pod


def machines(console: Console, cluster: Cluster, kinds: Mapping[str, str]) -> None:
    table = Table(title="the machines", title_justify="left")
    for column in ("node", "hardware", "NUMA nodes", "CPUs", "CPUs of each"):
        table.add_column(column)
    for name, node in cluster.nodes.items():
        sizes = sorted({len(numa_node.cpus) for numa_node in node.machine.numa_nodes if numa_node.cpus})
        table.add_row(
            name,
            kinds[name],
            str(len(node.machine.numa_nodes)),
            str(len(node.machine.cpus)),
            " or ".join(map(str, sizes)),
        )
    console.print(table)


def landing(console: Console, number: int, pod: Pod, place: Place, scores: Mapping[str, int]) -> None:
    """scores: the extender's, 0 to 10 by node."""
    listed = ", ".join(f"{node} {score}" for node, score in sorted(scores.items()))
    console.print(
        Text.assemble(
            (f"{number:3} ", "dim"),
            (f"{pod.shop}/{pod.service.name}".ljust(24), "bold"),
            ("-> ", "dim"),
            (f"{place.node} NUMA node {place.numa_nodes}".ljust(26), "green"),
            (f"scores: {listed}", "dim"),
        ),
        soft_wrap=True,
    )


def landed(console: Console, places: Mapping[Pod, Place]) -> None:
    """A row for each service, a column for each shop."""
    table = Table(title="who landed where (node:NUMA node x replicas)", title_justify="left")
    table.add_column("service")
    for shop in SHOPS:
        table.add_column(shop)
    for service in SERVICES:
        row = [service.name]
        for shop in SHOPS:
            spots = Counter(
                f"{place.node}:{place.numa_nodes}"
                for pod, place in places.items()
                if pod.shop == shop and pod.service is service
            )
            row.append(", ".join(f"{spot} x{count}" if count > 1 else spot for spot, count in sorted(spots.items())))
        table.add_row(*row)
    console.print(table)


def nominated(console: Console, explained: Iterable[Mapping[str, Any]]) -> None:
    """What became of the scheduler's nominations, by the enforcers' own word."""
    outcomes = Counter(
        event["nomination"]
        for pod in explained
        for event in pod["happened"]
        if event["event"] in ("create", "nomination")
    )
    listed = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    console.print(f"the NUMA nodes that the extender nominated: {listed}")


def compared(console: Console, ways: Mapping[str, Mapping[Pod, Place]], baselines: Iterable[Baseline]) -> None:
    """The same shops in the same order, placed in different ways; and what each way has to have written by hand."""
    by_hand = {"numakin": "the same annotation in each pod"} | {each.name: each.by_hand for each in baselines}
    table = Table(title="calls that stay inside one NUMA node", title_justify="left")
    table.add_column("placed by")
    for column in ("calls", "Pending"):
        table.add_column(column, justify="right")
    table.add_column("written by hand")
    for way, places in ways.items():
        pending = sum(place == NOWHERE for place in places.values())
        table.add_row(way, _cell(locality(places, SHOPS).numa), str(pending or "-"), by_hand[way])
    console.print(table)


def in_detail(console: Console, ways: Mapping[str, Mapping[Pod, Place]], baselines: Iterable[Baseline]) -> None:
    """Each shop by itself, and where each way ends."""
    table = Table(title="by shop, and inside one node", title_justify="left")
    table.add_column("placed by")
    for shop in (*SHOPS, "inside one node"):
        table.add_column(shop, justify="right")
    for way, places in ways.items():
        cells = [locality(places, [shop]).numa for shop in SHOPS]
        table.add_row(way, *map(_cell, cells), Text(f"{locality(places, SHOPS).node:.0%}", "dim"))
    console.print(table)
    ends = Table(title="where each breaks", title_justify="left")
    for column in ("placed by", "breaks"):
        ends.add_column(column)
    ends.add_row("numakin", "a group beyond one NUMA node is cut, where that costs least")
    for baseline in baselines:
        ends.add_row(baseline.name, baseline.breaks)
    console.print(ends)


def _cell(share: float) -> Text:
    return Text(f"{share:.0%}", "bold green" if share >= 0.8 else "yellow" if share >= 0.4 else "red")
