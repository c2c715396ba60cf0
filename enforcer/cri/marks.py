"""Which cpusets are our work, kept over a restart: in NRI a container carries our annotation, here nothing does.

A small file in the run folder, which lives as long as cgroups do: until the machine restarts. One that can't be read is
as good as none: a container in exactly a NUMA node's pool is known as ours all the same, any other is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from enforcer.log import Log
from placement.cpuset import CpuSet, NumaSet
from placement.errors import PlacementError

log = Log("bypass.marks")

Cpuset = tuple[CpuSet, NumaSet]
"""What was written; an empty set: nothing was."""


class Marks:
    """What was written, by container id."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Cpuset]:
        try:
            table = json.loads(self._path.read_text())
            return {key: (CpuSet.parse(cpus), NumaSet.parse(mems)) for key, (cpus, mems) in table.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError, PlacementError) as error:
            log.warning("what was written before is not known", file=self._path, error=error)
            return {}

    def write(self, written: Mapping[str, Cpuset]) -> None:
        text = json.dumps({key: (str(cpus), str(mems)) for key, (cpus, mems) in written.items()})
        half = self._path.with_suffix(".part")
        try:
            half.write_text(text)
            half.replace(self._path)
        except OSError as error:
            log.warning("what was written can't be noted: after a restart it will be left alone", error=error)
