"""The addresses of a network namespace, from procfs: what a runtime before NRI 0.10 does not report of a pod."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address

from enforcer.observe.attribution.containers import Address
from enforcer.observe.attribution.processes import PROC

_LOCAL = re.compile(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL")
_GLOBAL_SCOPE = "00"
"""Third-last field of if_inet6; 10 is loopback, 20 link-local (include/net/ipv6.h, IPV6_ADDR_*)."""


def of_process(pid: int) -> tuple[Address, ...]:
    """Those by which others reach the namespace of this process; none if it has ended."""
    net = PROC / str(pid) / "net"
    try:
        four, six = ipv4((net / "fib_trie").read_text()), net / "if_inet6"
        return (*four, *(ipv6(six.read_text()) if six.exists() else ()))
    except (OSError, ValueError):
        return ()


def ipv4(fib_trie: str) -> tuple[Address, ...]:
    """From /proc/net/fib_trie: leaves that are the host's own, without loopback, each once."""
    locals_ = dict.fromkeys(IPv4Address(text) for text in _LOCAL.findall(fib_trie))
    return tuple(address for address in locals_ if not address.is_loopback)


def ipv6(if_inet6: str) -> tuple[Address, ...]:
    """From /proc/net/if_inet6: `fd00...01 02 40 00 80 eth0`."""
    rows = (line.split() for line in if_inet6.splitlines())
    return tuple(IPv6Address(int(row[0], 16)) for row in rows if len(row) == 6 and row[3] == _GLOBAL_SCOPE)
