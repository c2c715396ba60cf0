"""What the enforcer's port serves: metrics, health, the node's traffic. `pages` has the paths, `port` the socket."""

from numakin.wire.later import mentioned

with (
    # For its own HTTP servers and clients, which are not used: OpenSSL, 3 MiB
    mentioned("ssl", "SSLContext", "TLSVersion", "PROTOCOL_TLS_SERVER", "PROTOCOL_TLS_CLIENT"),
    # For counters around functions, which are not used either: inspect, ast and dis, 1 MiB
    mentioned("prometheus_client.decorator", "decorate"),
):
    import prometheus_client as prometheus_client
