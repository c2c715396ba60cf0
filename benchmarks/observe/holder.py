"""A process that holds all collectors and nothing else: its memory is what observing adds to the enforcer."""

import json
from pathlib import Path

from benchmarks.observe.probes import everything


def memory() -> dict[str, int]:
    """Bytes resident now, and of these anonymous, by /proc/self/status."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(fields[name].split()[0]) << 10 for name in ("VmRSS", "RssAnon")}


if __name__ == "__main__":
    collectors = everything()
    for collector in collectors:
        collector.attach()
        collector.drain()
    print(json.dumps(memory()))
    for collector in collectors:
        collector.close()
