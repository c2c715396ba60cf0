"""What an enforcer does not know of its own members, or no longer: what NRI does not report, and a restart loses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from numakin.placement.model.demand import Demand
from numakin.placement.model.errors import PlacementError
from numakin.placement.optin.parsing import opted_in


def unknown(view: NodeView, rows: Iterable[PodRow]) -> Iterator[PodRow]:
    """The members that the node's report shows otherwise than the API server does."""
    return (row for row in tellable(view.name, rows) if _differs(view, row))


def tellable(node: str, rows: Iterable[PodRow]) -> Iterator[PodRow]:
    """The members of the node whose demands can be read."""
    for row in rows:
        if row.node == node and opted_in(row.annotations):
            try:
                _demands(row)
            except PlacementError:
                continue
            yield row


def _differs(view: NodeView, row: PodRow) -> bool:
    demands = _demands(row)
    reservations = (view.reported.reservations[key] for key in view.reported.directory.by_pod.get(row.uid, ()))
    return any(
        reservation.workload != row.workload
        or (reservation.key in demands and reservation.demand.promised != demands[reservation.key])
        for reservation in reservations
        if reservation.opted_in
    )


def _demands(row: PodRow) -> dict[str, Demand]:
    """By the key of the reservation that may have it, the pod's or a container's; BadQuantity."""
    return {row.uid: row.demand, **{f"{row.uid}/{container.name}": container.demand for container in row.containers}}
