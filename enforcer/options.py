"""The options of `numakin-enforcer run`, as the command line has them. Read by the hook too, so: standard library
only.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import fields

from enforcer.config import Config, merged, read_file

HELP = {
    "nri_socket": "the runtime's NRI socket",
    "plugin_index": "two digits: where among the NRI plugins we are called",
    "plugin_name": "our name as an NRI plugin",
    "node_name": "this Kubernetes node's name (default: the host's name)",
    "extender": "HOST:PORT of the extender's gRPC port; none: decide alone",
    "extender_ca": "file with the CA that signed the extender's certificate; none: no TLS",
    "extender_token": "file with the service account token that proves which node this is",
    "run_dir": "folder for the lock and the hook's socket",
    "sysfs": "where the machine is read from",
    "procfs": "where the kernel's facts are read from",
    "reserved_cpus": "CPUs that no member may use, such as 0-1",
    "metrics_listen": "HOST:PORT of /metrics, /healthz and /readyz; empty: none",
    "heartbeat_s": "seconds between signs of life on the stream",
    "log_level": "debug, info, warning or error",
    "log_format": "text or json",
}


def add_to(run: argparse.ArgumentParser) -> None:
    """One flag for each field of Config; None where not given, so that the environment and the file can speak."""
    run.add_argument("--config", metavar="FILE", help="TOML file with any of the options below")
    defaults = Config()
    for one in fields(Config):
        default = getattr(defaults, one.name)
        run.add_argument(
            "--" + one.name.replace("_", "-"),
            default=None,
            type=float if one.name.endswith("_s") else str,
            metavar=one.name.rpartition("_")[2].upper(),
            help=HELP[one.name] + ("" if "default:" in HELP[one.name] else f" (default: {default or 'none'})"),
        )


def run_options() -> argparse.ArgumentParser:
    run = argparse.ArgumentParser(prog="numakin-enforcer run")
    add_to(run)
    return run


def configured(arguments: argparse.Namespace) -> Config:
    """From the command line, the environment and the file that the command line names."""
    text = read_file(arguments.config) if arguments.config else ""
    return merged(vars(arguments), os.environ, text, arguments.config or "")
