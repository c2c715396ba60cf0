"""What the cluster's view is set to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. report_timeout: silence after which a node is not live. hold: how long an assumption lasts.

    group_hold: how long room is held for a group of which nothing moves. near: the labels by which nodes are near each
    other, the nearest first.

    patience: the longest that an answer to kube-scheduler waits for what is about to be known of its pod. The API
    server's watch shows it ten times sooner on a node that is not overloaded (1 to 30 ms behind kube-scheduler's own);
    no room is held for a pod that it has not shown, since any caller could invent one, and without that the next
    member of its group may be led to another node. What is expected of a new workload takes some milliseconds as well.
    """

    report_timeout: float = 60.0
    hold: float = 30.0
    group_hold: float = 60.0
    patience: float = 0.25
    near: tuple[str, ...] = ()


DEFAULT_SETTINGS = Settings()
