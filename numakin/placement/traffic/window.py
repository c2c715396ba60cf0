"""Windows of traffic: what was seen on a node in some seconds, attributed to pods; as JSON in recordings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from sys import intern

from numakin.placement.traffic.graph import Flow


class BadRecording(ValueError):
    """A recorded file that can't be read, with the line."""


@dataclass(frozen=True, slots=True)
class Window:
    """seconds: how long it covers. scale: 1 / duty cycle where counts are scaled samples, which they then already
    are. services: addresses that turned out to be Services'; what flowed to them is counted at the servers' ends.
    """

    seconds: float
    flows: tuple[Flow, ...] = ()
    scale: float = 1.0
    unattributed_bytes: int = 0
    lost_bytes: int = 0
    services: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(
            {
                "seconds": self.seconds,
                "scale": self.scale,
                "unattributed_bytes": self.unattributed_bytes,
                "lost_bytes": self.lost_bytes,
                "flows": [list(flow) for flow in self.flows],
                "services": list(self.services),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Window:
        """BadRecording when it is no window."""
        try:
            fields = json.loads(text)
            flows = tuple(
                Flow(
                    intern(str(source)),
                    intern(str(target)),
                    intern(str(kind)),
                    int(size),
                    int(messages),
                    any(by_server),
                )
                for source, target, kind, size, messages, *by_server in fields["flows"]
            )
            return cls(
                float(fields["seconds"]),
                flows,
                float(fields["scale"]),
                int(fields["unattributed_bytes"]),
                int(fields["lost_bytes"]),
                tuple(map(str, fields.get("services", ()))),
            )
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise BadRecording(f"not a recorded window: {error!r}") from error
