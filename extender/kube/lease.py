"""Which replica writes: the holder of a Lease, by the rules that client-go's leader election has.

The holder renews; the others poll, and take the Lease over when its holder has not renewed it for its whole duration,
by *their own* clock since they saw the last change (no two clocks are compared). Writes carry the resourceVersion that
was read, so that of several takers one wins. A holder that could not renew within its deadline stops writing by itself,
well before another replica may take over.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from extender.kube.api import Api, ApiError, Unreachable
from numakin.process.log import Log
from numakin.process.threads import Threaded, Threads

STALE_AFTER_S = 120.0
"""A poll and a write may wait for the API server for 70 s."""

JITTER = 1.2
"""A poll comes up to so many retry periods after the one before: client-go's JitterFactor."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """In seconds, with client-go's names and defaults. lease_duration: how long a silent holder is left in place.
    renew_deadline: how long a holder that can't renew goes on. retry_period: between two polls.

    ValueError, as client-go refuses them, when a holder might not stop before another takes over.
    """

    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline:
            raise ValueError(
                f"lease-duration {self.lease_duration} must be over renew-deadline {self.renew_deadline:g}"
            )
        if not self.renew_deadline > JITTER * self.retry_period:
            least = f"{JITTER} x retry-period {self.retry_period:g}"
            raise ValueError(f"renew-deadline {self.renew_deadline:g} must be over {least}")


DEFAULT_TERMS = LeaseDurations()


@dataclass(frozen=True, slots=True)
class Seen:
    """A Lease as last read, and when (monotonic) it was first seen so. `body` None: there is none."""

    body: Mapping[str, Any] | None = None
    at: float = 0.0

    @property
    def holder(self) -> str:
        return (self.body or {}).get("spec", {}).get("holderIdentity") or ""

    def updated(self, body: Mapping[str, Any] | None, now: float) -> Seen:
        """After another poll: an unchanged Lease keeps the time at which it was first seen."""
        unchanged = self.body is not None and body is not None and self.body.get("spec") == body.get("spec")
        return replace(self, body=body) if unchanged else Seen(body, now)

    def free(self, now: float) -> bool:
        """Whether it may be taken: there is none, it was given back, or its holder has let it run out."""
        if self.body is None or not self.holder:
            return True
        return now > self.at + (self.body["spec"].get("leaseDurationSeconds") or DEFAULT_TERMS.lease_duration)


def claim(seen: Seen, me: str, name: str, wall: datetime, duration_s: int) -> dict[str, Any]:
    """The Lease with me as its holder: taken over, or renewed. wall: the time to write into it."""
    spec = dict((seen.body or {}).get("spec", {}))
    if seen.holder != me:
        spec["acquireTime"] = micro_time(wall)
        if seen.body is not None:
            spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
    spec |= {"holderIdentity": me, "leaseDurationSeconds": duration_s, "renewTime": micro_time(wall)}
    spec.setdefault("leaseTransitions", 0)
    metadata = {"name": name}
    if seen.body is not None:
        metadata["resourceVersion"] = seen.body["metadata"]["resourceVersion"]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def micro_time(wall: datetime) -> str:
    """Always six digits after the point: the API server refuses any other form, also the one without a fraction."""
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Election(Threaded):
    """Takes part on a thread of its own. `leading` is asked before each write; `changed` is notified when it turns."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        me: str,
        changed: Callable[[bool], None] = lambda _leading: None,
        *,
        terms: LeaseDurations = DEFAULT_TERMS,
        threads: Threads,
    ) -> None:
        self._api = api
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._me = me
        self._changed = changed
        self._terms = terms
        self._seen = Seen()
        self._renewed = -terms.renew_deadline
        self._since = 0.0
        self._told = False
        self._refusal = ""
        self._thread = threads.thread(
            "lease", self._round, last=self._leave, stale_after_s=STALE_AFTER_S + 2 * terms.retry_period
        )

    @property
    def leading(self) -> bool:
        """Whether this replica may write, as far as it can know now."""
        return time.monotonic() < self._renewed + self._terms.renew_deadline

    @property
    def leading_since(self) -> float:
        """Since when it is, without a break: seconds, monotonic; infinite: it is not."""
        return self._since if self.leading else math.inf

    @property
    def holder(self) -> str:
        """The identity of the leader, as last seen; empty without one."""
        return self._seen.holder

    @property
    def others_lead(self) -> bool:
        """Whether another replica does, as far as is known."""
        return self.holder not in ("", self._me) and not self._seen.free(time.monotonic())

    def stop(self, timeout_s: float = 10.0) -> None:
        """Gives the Lease back, so that another replica need not wait for it to run out."""
        self._thread.stop(timeout_s)

    def _round(self) -> None:
        try:
            self._step()
        finally:
            self._tell()
        self._thread.stopping.wait(self._terms.retry_period * random.uniform(1.0, JITTER))  # noqa: S311 - jitter

    def _leave(self) -> None:
        if self.leading:
            self._give_back()
        self._tell()

    def _step(self) -> None:
        try:
            self._look()
            now = time.monotonic()
            if self._seen.holder == self._me or self._seen.free(now):
                self._write(self._claim())
                if not self.leading:
                    self._since = time.monotonic()
                # Counted from before the write: the others count from when they see it.
                self._renewed = now
            self._refusal = ""
        except ApiError as refused:
            if refused.code != 409:
                self._not_renewed(str(refused))
        except Unreachable as bad:
            self._not_renewed(str(bad))

    def _not_renewed(self, why: str) -> None:
        """A warning for each reason, not for each poll that finds it again."""
        log = _log.debug if why == self._refusal else _log.warning
        log("lease not renewed", lease=self._name, error=why)
        self._refusal = why

    def _look(self) -> None:
        try:
            body = self._api.get(f"{self._path}/{self._name}").json()
        except ApiError as refused:
            if refused.code != 404:
                raise
            body = None
        self._seen = self._seen.updated(body, time.monotonic())
        if self._seen.holder != self._me:
            self._renewed = -self._terms.renew_deadline

    def _claim(self) -> dict[str, Any]:
        return claim(self._seen, self._me, self._name, datetime.now(UTC), self._terms.lease_duration)

    def _write(self, lease: Mapping[str, Any]) -> None:
        fresh = self._seen.body is None
        method, path = ("POST", self._path) if fresh else ("PUT", f"{self._path}/{self._name}")
        self._seen = Seen(self._api.request(method, path, body=lease).json(), time.monotonic())

    def _give_back(self) -> None:
        self._renewed = -self._terms.renew_deadline
        try:
            lease = self._claim()
            lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            self._write(lease)
        except (ApiError, Unreachable) as bad:
            _log.warning("lease not given back", lease=self._name, error=str(bad))

    def _tell(self) -> None:
        leading = self.leading
        if leading != self._told:
            self._told = leading
            _log.info("leading" if leading else "not leading", lease=self._name)
            self._changed(leading)
