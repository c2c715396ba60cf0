"""Machines on which is decided."""

from __future__ import annotations

from tests import machines

SMALL, XEON, SNC, KUNPENG = machines.SMALL, machines.XEON, machines.XEON_SNC2, machines.KUNPENG_920
