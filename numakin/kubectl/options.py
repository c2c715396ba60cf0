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


COMMON = (
    (("--kubeconfig",), "FILE", "", "default: $KUBECONFIG, else ~/.kube/config"),
    (("--context",), "NAME", "", "default: the kubeconfig's current-context"),
    (("-n", "--namespace"), "NAMESPACE", "", "default: the context's"),
    (("--numakin-namespace",), "NAMESPACE", "numakin", "where numakin runs (default: numakin)"),
    (("--extender",), "URL", "", "this extender, without an API server"),
    (("--extender-token",), "FILE", "", "a token of the API server, for --extender"),
    (("--extender-ca",), "FILE", "", "certificate authority (PEM) of --extender"),
)
"""Options that every command has: their names, value, default and meaning."""


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
    _add_common(program, told=False)
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
        _add_common(own, told=True)
        own.set_defaults(run=command.run)
    return program


def _add_common(parser: argparse.ArgumentParser, *, told: bool) -> None:
    """told: in its help. As for kubectl they may stand before the command; what is after it wins."""
    reach = parser.add_argument_group("the cluster")
    for names, value, default, meaning in COMMON:
        reach.add_argument(
            *names,
            metavar=value,
            default=argparse.SUPPRESS if told else default,
            help=meaning if told else argparse.SUPPRESS,
        )


def _version() -> str:
    try:
        return version("numakin")
    except PackageNotFoundError:
        return "unknown"
