"""The process that does all that may be slow: traffic, plans, streams to the extender, metrics. Never imports `hook`.

Start with `process`, then `traffic_loop`: windows of traffic in, kin weights, plans and moves out.
"""

from proto.later import later

later("asyncio")  # for gRPC's, which is not used either: 1.3 MiB
later("html")  # for http.server's pages of errors: 0.4 MiB
later("mimetypes")  # for the files that http.server could serve: 0.1 MiB
