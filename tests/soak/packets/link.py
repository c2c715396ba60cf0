"""A link between two network namespaces of its own, whose packets can be scrambled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Self

from tests.soak.packets import namespaces
from tests.soak.packets.scrambling import CALM, Counts, Shares

NODE, EXTENDER = "192.0.2.1", "192.0.2.2"
"""Of RFC 5737's addresses for documentation; in namespaces of their own each link can have the same."""

END_S = 20.0
"""For the relay, once its input has ended."""


class RelayGone(RuntimeError):
    """It ended by itself: no packet passes any more."""


class Link:
    """A context manager; needs what `namespaces.missing` looks for. node, extender: who is at which end."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.node, near = self._end(stack, NODE, EXTENDER)
            self.extender, far = self._end(stack, EXTENDER, NODE)
            command = [sys.executable, "-m", "tests.soak.packets.relay", str(near), str(far)]
            self._relay = subprocess.Popen(
                command,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(near, far),
                start_new_session=True,  # ^C is not its: it ends with its input
            )
            stack.callback(self._stop)
            for tun in (near, far):
                os.close(tun)
            self._told({})
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @contextmanager
    def scrambled(self, shares: Shares, seed: int) -> Iterator[None]:
        """The packets that come meanwhile, both ways."""
        self._told({"seed": seed, **asdict(shares)})
        try:
            yield
        finally:
            self._told({"seed": seed, **asdict(CALM)})

    def counts(self) -> Counts:
        """Of both ways together, since it was made."""
        return self._told({})

    @property
    def pid(self) -> int:
        """The relay's."""
        return self._relay.pid

    @staticmethod
    def _end(stack: ExitStack, address: str, peer: str) -> tuple[namespaces.Namespace, int]:
        namespace, tun = namespaces.made(address, peer)
        stack.callback(os.close, namespace.descriptor)
        return namespace, tun

    def _told(self, order: Mapping[str, float]) -> Counts:
        """The order is in force when this returns."""
        assert self._relay.stdin is not None
        assert self._relay.stdout is not None
        try:
            self._relay.stdin.write(json.dumps(order) + "\n")
            self._relay.stdin.flush()
            answer = self._relay.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise RelayGone(f"the relay ended with status {self._relay.wait()}")
        return Counts(**json.loads(answer))

    def _stop(self) -> None:
        with self._relay as relay:
            assert relay.stdin is not None
            try:
                relay.stdin.close()
                relay.wait(END_S)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                relay.kill()
