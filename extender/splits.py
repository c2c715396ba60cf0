"""Whether a pod that was bound away from its group could have been with it. Under the cluster's lock."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice

from extender.scoring.history import History, Offer
from extender.scoring.node_table import NodeTable
from extender.scoring.predict import Prediction, Wanted
from extender.state.node_view import NodeView
from extender.state.pods import PodRow
from numakin.placement.decide.request import NO_KIN, Kin

MOST_PEERS_ASKED = 8
"""Nodes with members that are asked whether they had room for a pod that went elsewhere."""


class Splits:
    """predicted: a pod's place on a node; None where it can't be computed."""

    def __init__(
        self, nodes: NodeTable, history: History, predicted: Callable[[NodeView, Wanted, Kin], Prediction | None]
    ) -> None:
        self._nodes, self._history, self._predicted = nodes, history, predicted

    def had_room(self, row: PodRow, offer: Offer, kin: Kin, *, as_assumed: bool) -> str:
        """An offered node with members of the pod's group and room for the pod; empty where it went to members, or to
        the slot that is planned for it, or there is none.

        as_assumed: whether it went where its scores led. Then members that were scored later do not count, though their
        bindings may be seen first: where kube-scheduler samples nodes, one may have gone to a node of this pod's sample
        because this pod's node was not in its own. Nor does a pod that followed members whose bindings are not seen
        yet: should they go elsewhere, they count themselves.
        """
        want, latest = offer.want, offer.at if as_assumed else math.inf
        members = self._nodes.groups.nodes(want.group) if want.group else {}
        if kin.weights or kin.planned or _members(self._nodes.pods_view(row.node), want, settled=not as_assumed):
            return ""
        peers = (node for node in offer.names if node in members and node != row.node)
        for node in islice(peers, MOST_PEERS_ASKED):
            view = self._nodes.view(node)
            offers = map(self._history.offer, _members(view, want, settled=True))
            earlier = any(other is None or other.at <= latest for other in offers)
            if view is not None and view.placing and earlier:
                prediction = self._predicted(view, want, NO_KIN)
                if prediction is not None and prediction.fits_as_asked and prediction.admitted:
                    return node
        return ""


def _members(view: NodeView | None, want: Wanted, *, settled: bool) -> set[str]:
    """The uids of the others of the pod's group there. settled: only of those that are there for certain: reported, or
    bound.
    """
    if view is None or not want.group:
        return set()
    pods = {reservation.pod for reservation in view.occupancy.members(want.group, but=want.pod.uid)}
    return {pod for pod in pods if not settled or pod not in view.assumed or view.assumed[pod].bound}
