"""Groups whose pods may not share a node with some of each other, as they say themselves: which may be together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.state.apart import PodKind


@dataclass(slots=True)
class Piece:
    """Pods that may be on one node. node: where members are that they may be beside; empty: anywhere. uids: in their
    order.
    """

    node: str = ""
    kinds: set[PodKind] = field(default_factory=set)
    uids: list[str] = field(default_factory=list)

    def takes(self, kind: PodKind) -> bool:
        return not any(kind.excludes(other) for other in self.kinds)


def pieces(pods: Mapping[str, PodKind], there: Mapping[str, Sequence[PodKind]]) -> list[Piece]:
    """As few as hold all, each as large as may be: first beside the members that are there, where most of them are.
    pods: by uid. there: by node, of its members.
    """
    found = [Piece(node, set(kinds)) for node, kinds in sorted(there.items(), key=lambda row: (-len(row[1]), row[0]))]
    alike: dict[PodKind, list[str]] = defaultdict(list)
    for uid, kind in pods.items():
        alike[kind].append(uid)
    for kind, uids in sorted(alike.items(), key=lambda row: (-len(row[0].apart), -len(row[1]), row[1])):
        for uid in uids:
            piece = next((piece for piece in found if piece.takes(kind)), None)
            if piece is None:
                found.append(piece := Piece())
            piece.uids.append(uid)
            piece.kinds.add(kind)
    return [piece for piece in found if piece.uids]
