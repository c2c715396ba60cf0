"""The options of `numakin-enforcer run`, as the command line has them. Read by the hook too, so: standard library
only.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from enforcer.settings.config import Config, merged
from numakin.process import options


class Parser(argparse.ArgumentParser):
    """Without the whole usage before each error; a value that begins with a dash needs `--option=VALUE`."""

    def error(self, message: str) -> NoReturn:
        print(f"numakin-enforcer: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def add_to(run: argparse.ArgumentParser) -> None:
    run.add_argument("--config", metavar="FILE", help="TOML file with any of the options below")
    options.add_to(run, Config)


def run_options() -> argparse.ArgumentParser:
    run = Parser(prog="numakin-enforcer run")
    add_to(run)
    return run


def configured(arguments: argparse.Namespace) -> Config:
    """From the command line, the environment and the file that the command line names."""
    text = options.read_file(arguments.config) if arguments.config else ""
    return merged(vars(arguments), os.environ, text, arguments.config or "")
