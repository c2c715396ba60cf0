"""Writes a known machine's sysfs tree, or lists the machines.

python -m lab.standins.machines list
python -m lab.standins.machines epyc-7763-nps4 /tmp/epyc
numakin-enforcer --sysfs /tmp/epyc/sys ...
lscpu --sysroot /tmp/epyc
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lab.standins.machines import MACHINES, write_procfs, write_sysfs


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.standins.machines", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=["list", *MACHINES], metavar="NAME", help="a machine's name, or: list")
    parser.add_argument("folder", nargs="?", type=Path, help="FOLDER/sys and FOLDER/proc are made")
    given = parser.parse_args(words)
    if given.name == "list":
        for name, description in MACHINES.items():
            numa_nodes, cpus = len(description.machine.numa_nodes), len(description.machine.cpus)
            print(f"{name:24} {numa_nodes:3} NUMA nodes {cpus:4} CPUs  {description.title}")
        return
    if given.folder is None:
        parser.error("FOLDER is missing")
    write_sysfs(MACHINES[given.name], given.folder / "sys")
    write_procfs(MACHINES[given.name], given.folder / "proc")
    print(f"--sysfs {given.folder / 'sys'}")


if __name__ == "__main__":
    main()
