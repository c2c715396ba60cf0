"""What other controllers write on a pod about the pods that it comes with.

None of it opts a pod in: that is the annotation `group.numakin.io`, and its name of the group stands. The size only
says what is still to come of it, where the pod has no `size.numakin.io`, and holds no room by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from numakin.placement.optin.parsing import LARGEST_SIZE

COSCHEDULING = "scheduling.x-k8s.io/pod-group"
"""The label by which scheduler-plugins' coscheduling knows the pods that it lets start together."""

SIZES = ("leaderworkerset.sigs.k8s.io/size", "kueue.x-k8s.io/pod-group-total-count")
"""Annotations: the pods of a group of a LeaderWorkerSet, its leader included, and of a plain pod group of Kueue."""


def size(annotations: Mapping[str, str]) -> int:
    """How many pods belong together; 0: nothing readable says it."""
    texts = (annotations.get(key, "") for key in SIZES)
    sizes = (int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= 5)
    return next((number for number in sizes if 0 < number <= LARGEST_SIZE), 0)
