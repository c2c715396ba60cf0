"""Differences between two generations of a node's report, and how the extender takes them."""

from __future__ import annotations

import grpc

from numakin.placement.state.occupancy import fingerprint
from numakin.wire import convert
from numakin.wire import report_pb2 as pb
from tests.extender.running import welcome

ANEW = welcome(resume=False)


def difference(base, generation, reservations, *, allocations=(), new=(), gone=()):
    return pb.Report(
        generation=generation,
        base_generation=base,
        fingerprint=fingerprint(reservations, allocations),
        reservations=map(convert.reservation_to, new),
        gone_reservations=gone,
    )


INVALID, EXHAUSTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED
