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
    "policy_options": "how members are placed, NAME or NAME=VALUE with commas between. As the kubelet has them: "
    "prefer-closest-numa-nodes (on unless =false), max-allowable-numa-nodes=N, align-by-socket (restricted admits "
    "that), distribute-cpus-across-numa, distribute-cpus-across-cores. Ours: max-exclusive-cpus-per-namespace=N, "
    "unless its Namespace object says otherwise; shared-pool=all: every container of the node that no other owner "
    "keeps to fewer CPUs keeps off exclusive ones; span=cache: members share the CPUs of one last-level cache, while "
    "that has room, for pods without span.numakin.io; within-others: a member that another owner confines to several "
    "NUMA nodes is narrowed to one of them once it has started (not in bypass mode)",
    "vm_runtimes": "handlers of RuntimeClasses whose containers run in virtual machines, and are left open, with "
    "commas between and * for any characters; empty: none",
    "podresources_socket": "where the kubelet reports which devices containers have; off: it is not asked",
    "podresources_listen": "a socket on which numakin answers as the kubelet's podresources API, with what it gave",
    "metrics_listen": "HOST:PORT of /metrics, /healthz and /readyz; empty: none",
    "observe": "share of time in which traffic is counted; off: never",
    "window_s": "seconds of traffic that are evaluated together",
    "moves": "make: running members are moved to their kin; plan: moves are looked for and told, but none is made",
    "move_hours": "hours of the day, in UTC, in which running members are moved, such as 22:00-06:00; empty: always",
    "move_budget": "members in a hundred that are moved to their kin in one window on average, as many at the "
    "least; 0: none is ever moved",
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
    "policy_options": "OPTIONS",
    "vm_runtimes": "HANDLERS",
    "podresources_socket": "PATH|off",
    "podresources_listen": "PATH|off",
    "metrics_listen": "HOST:PORT",
    "observe": "SHARE|off",
    "window_s": "SECONDS",
    "moves": "make|plan",
    "move_hours": "HH:MM-HH:MM",
    "move_budget": "N",
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
