"""What every command works with: the ways to the extender and to the API server, opened when they are asked for."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import cached_property

from numakin.kubectl.apiserver import ApiServer, connect
from numakin.kubectl.errors import CommandError, UsageError
from numakin.kubectl.reach import Direct, Extender, Proxied


def agreed(question: str) -> None:
    """UsageError where there is no terminal to ask at, CommandError where the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked: give --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was done")


class Session:
    """One run of the program. given: the options that all commands have."""

    def __init__(self, given: Namespace) -> None:
        self._given = given

    @cached_property
    def api(self) -> ApiServer:
        """UsageError without a usable kubeconfig, or where --extender leaves the API server out."""
        if self._given.extender:
            raise UsageError(f"{self._given.command} asks the API server: leave --extender out")
        return connect(self._given.kubeconfig, self._given.context)

    @cached_property
    def extender(self) -> Extender:
        if self._given.extender:
            return Direct(self._given.extender, self._given.extender_ca, self._given.extender_token)
        return Proxied(self.api, self.installed_in)

    @property
    def installed_in(self) -> str:
        """The namespace of numakin's own pods."""
        return str(self._given.numakin_namespace)

    @property
    def namespace(self) -> str:
        """The one that is asked about: as kubectl has it."""
        if self._given.namespace:
            return str(self._given.namespace)
        return "default" if self._given.extender else self.api.namespace
