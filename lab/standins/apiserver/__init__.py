"""A small API server that answers as a real kube-apiserver was recorded to: for tests, simulations and the demo.

`ApiServer` (server.py) is the way in. It has what a real one can't be made to do: faults, delays, storms, watches at a
given moment, and what leads there. What it serves is in `kinds.py`. Schemas, defaults beyond a few, who owns which
field in detail, admission and controllers are the real one's, in tests/cluster.
"""

from lab.standins.apiserver.server import ApiServer

__all__ = ["ApiServer"]
