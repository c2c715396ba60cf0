"""What the running enforcer has met on its node, as findings of the doctor: whatever it does not do that its pods ask
for, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from enforcer.cli import members
from enforcer.cli.findings import BAD, GOOD, NOTE, Finding
from enforcer.cli.status import SILENT_S, UNWRITTEN
from enforcer.settings.config import Config
from numakin.placement.state.yielded import Yielded

NAMED = 3
"""Containers that a finding names; `status` names all."""


def command(verb: str, config: Config) -> str:
    """`numakin-enforcer VERB`, for this enforcer's run folder."""
    other = f" --run-dir {config.run_dir}" if config.run_dir != Config().run_dir else ""
    return f"numakin-enforcer {verb}{other}"


def of_the_process(met: Mapping[str, Any], config: Config) -> Iterator[Finding]:
    """Whether it works at all."""
    if not met["registered"]:
        text = "the enforcer is not registered with the container runtime: pods start unpinned"
        yield Finding("enforcer", BAD, text, "journalctl -u containerd -u crio --since -10min | grep -i nri")
    if met["released"]:
        text = "it was released: nothing is pinned, and no new container is, until it is resumed"
        yield Finding("enforcer", BAD, text, command("resume", config))
    if met.get("not_written_down"):
        yield Finding("enforcer", BAD, f"{UNWRITTEN}: {met['not_written_down']}", f"df -h {config.run_dir}")
    health = met["observer"]
    silent_s = health.get("seconds_ago")
    if silent_s is None:
        text = "the observer has given no sign of life yet, as right after a start: nothing is learned or reported"
        yield Finding("enforcer", NOTE, text, command("status", config))
    elif silent_s > SILENT_S:
        text = f"the observer was silent for {silent_s:.0f} s: nothing is learned or reported"
        yield Finding("enforcer", BAD, f"{text}, and pods are pinned by what is known", command("status", config))
    elif health["degraded"]:
        yield Finding("enforcer", NOTE, f"the observer is degraded: {health['degraded']}", command("status", config))
    elif met["registered"] and not met["released"]:
        yield Finding("enforcer", GOOD, f"it runs and is registered: {members.sums(met['containers'])}")


def of_the_members(met: Mapping[str, Any], config: Config) -> Iterator[Finding]:
    """Which containers have not got what their pods ask for."""
    status, rows = command("status", config), met["containers"]
    differing = stray(met)
    if differing:
        text = (
            f"{_some(differing)}: the cgroup has another cpuset than numakin gave and asked for twice;"
            " the kernel refuses it (a cgroup below has more), or another program writes it; exclusive CPUs that it"
            " runs on are not exclusive"
        )
        yield Finding("cpusets", BAD, text, status)
    refused = [row for row in rows if row["state"] == "refused"]
    if refused:
        yield Finding("cpusets", BAD, f"{_some(refused)}: the kernel refused the cpuset, and it is left alone", status)
    nowhere = [row for row in rows if row["state"] == "left open"]
    if nowhere:
        text = f"{_some(nowhere)}: left open, most often as no NUMA nodes have room for what it asks for"
        yield Finding("members", NOTE, f"{text}; lower its requests, or make room", status)
    if met.get("hot"):
        out = sum(bool(row["let_out"]) for row in rows)
        text = (
            f"CPUs {' and '.join(met['hot'])} are nearly all in use while others are not: newcomers go elsewhere, and "
            f"{out} containers are let out until it is cool; raise the requests of pods that use more than they ask for"
        )
        yield Finding("hot", NOTE, text, command("status --all", config))


def stray(met: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers whose cgroup has another cpuset than they were given: perhaps another owner's."""
    return [row for row in met["containers"] if members.differs(row)]


def of_other_owners(met: Mapping[str, Any], config: Config, owners: str) -> Iterator[Finding]:
    """Who else sets cpusets here, as it was met. owners: as processes show them; empty, or after a colon."""
    status = command("status", config)
    for which in met.get("conflicts", ()):
        text = f"the creation of {which} failed, as another NRI plugin that is asked after numakin sets its cpuset too"
        yield Finding("cpusets", BAD, f"{text}; give it an index below {config.plugin_index}{owners}", status)
    yielded = Yielded(**{key: count for key, count in met.get("yielded", {}).items() if key != "powerless"})
    if yielded.powerless:
        text = f"{yielded}: the extender scores this node 0; let one of them set cpusets here{owners}"
        yield Finding("cpusets", BAD, text, status)
    elif yielded.containers:
        text = f"{yielded}: numakin leaves these where they are{owners}"
        yield Finding("cpusets", NOTE, text, status)


def _some(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [f"{row['pod']} {row['container']}" for row in members.ranked(rows)]
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
