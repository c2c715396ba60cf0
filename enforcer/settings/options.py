"""The options of `numakin-enforcer run`, as the command line has them. Read by the hook too, so: standard library
only.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields
from typing import NoReturn

from enforcer.settings.config import Config, merged, read_file

HELP = {
    "mode": "nri: a plugin of the runtime; bypass: for a runtime without NRI, followed over CRI, pinned a moment late",
    "nri_socket": "the runtime's NRI socket",
    "cri_socket": "the runtime's CRI socket, for bypass",
    "plugin_index": "two digits: where among the NRI plugins we are called",
    "plugin_name": "our name as an NRI plugin",
    "node_name": "this Kubernetes node's name (default: the host's name)",
    "extender": "HOST:PORT of the extender's gRPC port, several with commas between; none: decide alone",
    "extender_ca": "the CA that signed the extender's certificate; none: no TLS; read anew at each dial",
    "extender_cert": "our own certificate, for an extender that demands one; read anew at each dial",
    "extender_key": "its private key",
    "extender_token": "the service account token that proves which node this is",
    "run_dir": "folder for the lock and the hook's socket",
    "sysfs": "where the machine is read from",
    "procfs": "where the kernel's facts are read from",
    "reserved_cpus": "CPUs that no member may use, such as 0-1",
    "memory_tiers": "NUMA nodes of movable memory alone that members may spill to: CXL; not a GPU's",
    "shared_pool": "who keeps off exclusive CPUs; all: every container of the node that no other owner keeps to fewer",
    "span": "numa: members share their NUMA node's CPUs; cache: those of one last-level cache, while that has room; "
    "for pods without span.numakin.io",
    "prefer_closest_numa_nodes": "among sets of equally many NUMA nodes, prefer the closest",
    "max_allowable_numa_nodes": "refuse a machine with more NUMA nodes; 0: no limit",
    "distribute_cpus_across_numa": "exclusive CPUs that need several NUMA nodes come from each in equal parts",
    "distribute_cpus_across_cores": "exclusive CPUs come from as many cores as can be; without effect on whole cores",
    "align_by_socket": "several NUMA nodes come from as few sockets as can be, even if they are more; restricted "
    "admits that",
    "max_exclusive_cpus_per_namespace": (
        "exclusive CPUs that one namespace's containers may have here, unless its Namespace object says otherwise"
    ),
    "within_others": "on: a member that another owner confines to several NUMA nodes is narrowed to one of them once "
    "it has started; off: it is left alone. Not in bypass mode",
    "vm_runtimes": "handlers of RuntimeClasses whose containers run in virtual machines, and are left open, with "
    "commas between and * for any characters; empty: none",
    "podresources_socket": "where the kubelet reports which devices containers have; off: it is not asked",
    "podresources_listen": "a socket on which numakin answers as the kubelet's podresources API, with what it gave",
    "kubelet_root": "the kubelet's --root-dir, for doctor (default: as the kubelet's command line says)",
    "metrics_listen": "HOST:PORT of /metrics, /healthz and /readyz; empty: none",
    "heartbeat_s": "seconds between heartbeats on the stream",
    "observe": "auto: watch who talks to whom; off: do not",
    "duty_cycle": "share of time that the probes are on",
    "window_s": "seconds of traffic that are evaluated together",
    "moves": "make: running members are moved to their kin; plan: moves are looked for and told, but none is made",
    "move_hours": "hours of the day, in UTC, in which running members are moved, such as 22:00-06:00; empty: always",
    "move_budget": "members in a hundred that are moved to their kin in one window on average, as many at the "
    "least; 0: none is ever moved",
    "move_group_share": "share of a group's members on a node (of auto groups: of a workload's replicas) that are "
    "moved within six windows; 1: all",
    "move_memory": "memory that members may leave behind within six windows, such as 16Gi: whoever has more is never "
    "moved; none: no limit",
    "replay": "file of recorded traffic to learn from instead of the kernel's",
    "log_level": "the least severe level logged",
    "log_format": "text for people, json for machines",
}

METAVARS = {
    "mode": "nri|bypass",
    "nri_socket": "PATH",
    "cri_socket": "PATH",
    "extender": "HOST:PORT",
    "extender_ca": "FILE",
    "extender_cert": "FILE",
    "extender_key": "FILE",
    "extender_token": "FILE",
    "run_dir": "FOLDER",
    "sysfs": "FOLDER",
    "procfs": "FOLDER",
    "shared_pool": "members|all",
    "span": "numa|cache",
    "prefer_closest_numa_nodes": "on|off",
    "max_allowable_numa_nodes": "N",
    "distribute_cpus_across_numa": "on|off",
    "distribute_cpus_across_cores": "on|off",
    "align_by_socket": "on|off",
    "max_exclusive_cpus_per_namespace": "N|none",
    "within_others": "on|off",
    "vm_runtimes": "HANDLERS",
    "podresources_socket": "PATH|off",
    "podresources_listen": "PATH|off",
    "metrics_listen": "HOST:PORT",
    "heartbeat_s": "SECONDS",
    "observe": "auto|off",
    "duty_cycle": "SHARE",
    "window_s": "SECONDS",
    "moves": "make|plan",
    "move_hours": "HH:MM-HH:MM",
    "move_budget": "N",
    "move_group_share": "SHARE",
    "move_memory": "SIZE|none",
    "replay": "FILE",
    "log_level": "debug|info|warning|error",
    "log_format": "text|json",
}
"""Where the option's last word does not say what it takes."""


class Parser(argparse.ArgumentParser):
    """Without the whole usage before each error; a value that begins with a dash needs `--option=VALUE`."""

    def error(self, message: str) -> NoReturn:
        print(f"numakin-enforcer: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def add_to(run: argparse.ArgumentParser) -> None:
    """One flag for each field of Config; None where not given, so that the environment and the file can speak."""
    run.add_argument("--config", metavar="FILE", help="TOML file with any of the options below")
    defaults = Config()
    for field in fields(Config):
        default = getattr(defaults, field.name)
        run.add_argument(
            "--" + field.name.replace("_", "-"),
            default=None,
            metavar=METAVARS.get(field.name, field.name.rpartition("_")[2].upper()),
            help=HELP[field.name] + ("" if "default:" in HELP[field.name] or not default else f" (default: {default})"),
        )


def run_options() -> argparse.ArgumentParser:
    run = Parser(prog="numakin-enforcer run")
    add_to(run)
    return run


def configured(arguments: argparse.Namespace) -> Config:
    """From the command line, the environment and the file that the command line names."""
    text = read_file(arguments.config) if arguments.config else ""
    return merged(vars(arguments), os.environ, text, arguments.config or "")
