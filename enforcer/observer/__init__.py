"""The process that does all that may be slow: traffic, plans, streams to the extender, metrics. Never imports `hook`.

Start with `process`, then `traffic_loop`: windows of traffic in, kin weights, plans and moves out.
"""

from numakin.wire.later import later

later("hashlib")  # for passwords that urllib could send, by prometheus_client: OpenSSL, 3 MiB
later("html")  # for http.server's pages of errors: 0.4 MiB
later("mimetypes")  # for the files that http.server could serve: 0.1 MiB
