"""A small API server that answers as a real kube-apiserver was recorded to: for tests, simulations and the demo.

`ApiServer` (server.py) is the way in. What it serves is in `kinds.py`; what it leaves out is protobuf, gzip, Table and
PartialObjectMetadata output, discovery beyond the health and version paths, admission, and controllers.
"""

from lab.standins.apiserver.server import ApiServer

__all__ = ["ApiServer"]
