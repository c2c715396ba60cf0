"""Which proxy leads to an API server, by the environment as kubectl reads it: Go's rules, which differ from Python's.

NO_PROXY may name networks and ports, and no proxy leads to a loopback address (golang.org/x/net/http/httpproxy).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": "80", "https": "443"}


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """The proxy's URL; empty where the way is direct."""
    server = urlsplit(url)
    host = (server.hostname or "").rstrip(".")
    proxy = _named(environment, f"{server.scheme}_proxy")
    if (
        not proxy
        or _is_loopback(host)
        or _is_excepted(host, str(server.port or DEFAULT_PORTS[server.scheme]), environment)
    ):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _named(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_excepted(host: str, port: str, environment: Mapping[str, str]) -> bool:
    entries = [entry.strip().lower() for entry in _named(environment, "no_proxy").split(",")]
    return any(_excepts(entry, host, port) for entry in entries if entry)


def _excepts(entry: str, host: str, port: str) -> bool:
    """entry: *, a network, or an address or a domain, with a port or without."""
    if entry == "*":
        return True
    if "/" in entry:
        return _is_in(host, entry)
    name, only = _split(entry)
    if only not in ("", port):
        return False
    domain = name.removeprefix("*")
    return host == domain or (not _is_address(host) and host.endswith(f".{domain.removeprefix('.')}"))


def _split(entry: str) -> tuple[str, str]:
    """Name and port; of an IPv6 address the port alone is after brackets."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    name, colon, port = entry.rpartition(":")
    return (name, port) if colon and ":" not in name else (entry, "")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_in(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
