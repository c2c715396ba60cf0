"""What a person sees of the demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.cluster import Cluster
from demo.locality import Locality, Place, locality
from demo.shop import SERVICES, SHOPS, Pod


def machines(console: Console, cluster: Cluster, kinds: Mapping[str, str]) -> None:
    table = Table(title="the machines", title_justify="left")
    for column in ("node", "hardware", "NUMA nodes", "CPUs", "CPUs of each"):
        table.add_column(column)
    for name, node in cluster.nodes.items():
        sizes = sorted({len(one.cpus) for one in node.machine.numa_nodes if one.cpus})
        table.add_row(
            name,
            kinds[name],
            str(len(node.machine.numa_nodes)),
            str(len(node.machine.cpus)),
            " or ".join(map(str, sizes)),
        )
    console.print(table)


def landing(console: Console, number: int, pod: Pod, place: Place, why: str) -> None:
    console.print(
        Text.assemble(
            (f"{number:3} ", "dim"),
            (f"{pod.shop}/{pod.service.name}".ljust(24), "bold"),
            ("-> ", "dim"),
            (f"{place.node} NUMA node {place.numa_nodes}".ljust(26), "green"),
            (why, "dim"),
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


def compared(console: Console, ways: Mapping[str, Mapping[Pod, Place]]) -> None:
    """The same shops, the same order, placed in different ways."""
    table = Table(title="calls that stay inside one NUMA node (inside one node)", title_justify="left")
    table.add_column("placed by")
    for shop in (*SHOPS, "all"):
        table.add_column(shop, justify="right")
    for way, places in ways.items():
        cells = [locality(places, [shop]) for shop in SHOPS] + [locality(places, SHOPS)]
        table.add_row(way, *(_cell(one) for one in cells))
    console.print(table)


def _cell(one: Locality) -> Text:
    style = "bold green" if one.numa >= 0.8 else "yellow" if one.numa >= 0.4 else "red"
    return Text.assemble((f"{one.numa:4.0%}", style), (f" ({one.node:4.0%})", "dim"))
