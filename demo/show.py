"""What a person sees of the demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.baselines import Baseline
from demo.cluster import Cluster
from demo.locality import NOWHERE, Place, locality
from demo.shop import SERVICES, SHOPS, Pod


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
    console.print(f"the NUMA nodes that the extender nominated: {listed}\n")


def compared(console: Console, ways: Mapping[str, Mapping[Pod, Place]]) -> None:
    """The same shops, the same order, placed in different ways."""
    table = Table(title="calls that stay inside one NUMA node", title_justify="left")
    table.add_column("placed by")
    for shop in (*SHOPS, "all", "inside one node", "Pending"):
        table.add_column(shop, justify="right")
    for way, places in ways.items():
        whole = locality(places, SHOPS)
        cells = [locality(places, [shop]).numa for shop in SHOPS] + [whole.numa]
        pending = sum(place == NOWHERE for place in places.values())
        table.add_row(way, *map(_cell, cells), Text(f"{whole.node:.0%}", "dim"), str(pending or "-"))
    console.print(table)


def by_hand(console: Console, baselines: Iterable[Baseline]) -> None:
    """What each way costs whoever keeps it up, and where it ends."""
    table = Table(title="what each needs written by hand, and where it breaks", title_justify="left", show_lines=True)
    for column in ("placed by", "by hand", "breaks"):
        table.add_column(column)
    table.add_row(
        "numakin", "the same annotation in each pod", "a group beyond one NUMA node is cut, where that costs least"
    )
    for baseline in baselines:
        table.add_row(baseline.name, baseline.by_hand, baseline.breaks)
    console.print(table)


def _cell(share: float) -> Text:
    return Text(f"{share:.0%}", "bold green" if share >= 0.8 else "yellow" if share >= 0.4 else "red")
