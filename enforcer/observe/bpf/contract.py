"""The Python half of contract.h: layouts of what the kernel's maps hold.

A test compiles contract.h and compares sizes and offsets with these.
"""

import struct
from enum import IntEnum

EDGE_KEY = struct.Struct("=Q16sHBBI")
"""cgroup, peer, port, server, protocol, namespace."""

EDGE_VALUE = struct.Struct("=4Q")
"""tx_bytes, tx_messages, rx_bytes, rx_messages."""

EDGE_SLOT_SIZE = EDGE_KEY.size + EDGE_VALUE.size + 8
"""An edge key, its value, and a word of the programs' own; empty where the key's cgroup is 0."""

SLOTS_OF_CPU = 128
"""80 bytes for each: 10 KiB a CPU."""

PAIR_KEY = struct.Struct("=QQII")
"""from, to, pid, unused."""

PAIR_VALUE = struct.Struct("=2Q")
"""bytes, messages."""


ROOT_CGROUP = 1

BY_ADDRESS = 1 << 63
"""In a key's cgroup: the local end is known by its own address alone."""

BY_PROCESS = 1 << 62
"""In a key's cgroup, without BY_ADDRESS: the local end is in the host's network and known by its process id."""


EPHEMERAL_FLOOR = 32768
"""First of Linux's default net.ipv4.ip_local_port_range."""


class MissedSlot(IntEnum):
    """Slots of the array `missed`."""

    FULL_BYTES = 0
    FULL_MESSAGES = 1
    OTHER_BYTES = 2
    OTHER_MESSAGES = 3
