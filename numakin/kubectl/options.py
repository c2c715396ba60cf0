"""The options: those that every command has, and the commands."""

from __future__ import annotations

import argparse
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from numakin.kubectl.commands import COMMANDS
from numakin.kubectl.errors import UsageError

EPILOG = """\
examples:
  kubectl numakin map                              the cluster: nodes, their NUMA nodes, who is where
  kubectl numakin explain pod cart-0 -n shop       why the pod is where it is, and what else was weighed
  kubectl numakin top -A                           who talks to whom, live
  kubectl numakin plan -f deploy.yaml              where each replica would go, without creating anything
  kubectl numakin doctor                           every node, and whether kube-scheduler asks the extender at all

It talks to the extender through the API server, with your kubeconfig and your rights: get (for `plan` create too) on
services/proxy in numakin's namespace. --extender URL goes straight to one, as for `make demo`.

exit codes: 0 done, 1 bad news (not found, a bad finding, nothing to conclude), 2 wrong use, 3 nobody answered
"""


class Parser(argparse.ArgumentParser):
    """Without the whole usage before each error; nothing may be cut short."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parser() -> Parser:
    """The whole command line."""
    program = Parser(
        prog="kubectl numakin",
        description="Ask numakin: who is where, why, who talks to whom, and what would happen.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    program.add_argument("--version", action="version", version=f"kubectl-numakin {_version()}")
    commands = program.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for command in COMMANDS:
        lines = (command.__doc__ or "").strip().splitlines()
        summary = lines[0].partition(": ")[2].rstrip(".")
        own = commands.add_parser(
            command.NAME,
            help=summary,
            description=summary,
            epilog=command.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_options(own)
        _add_common(own)
        own.set_defaults(run=command.run)
    return program


def _add_common(own: argparse.ArgumentParser) -> None:
    reach = own.add_argument_group("the cluster")
    reach.add_argument("--kubeconfig", default="", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    reach.add_argument("--context", default="", metavar="NAME", help="default: the kubeconfig's current-context")
    reach.add_argument("-n", "--namespace", default="", help="default: the context's")
    reach.add_argument(
        "--numakin-namespace", default="numakin", metavar="NAMESPACE", help="where numakin runs (default: %(default)s)"
    )
    reach.add_argument("--extender", default="", metavar="URL", help="this extender, without an API server")
    reach.add_argument("--extender-token", default="", metavar="FILE", help="a token of the API server, for --extender")
    reach.add_argument("--extender-ca", default="", metavar="FILE", help="certificate authority (PEM) of --extender")


def _version() -> str:
    try:
        return version("numakin")
    except PackageNotFoundError:
        return "unknown"
