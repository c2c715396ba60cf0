"""What is drawn over and over: at a terminal alone, and as long as somebody looks, whoever answers meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from tests.numakin.kubectl.asking import ask
from tests.terminal import terminal

REDRAWN = "\x1b[?1049h"
"""By which a terminal goes to another screen."""

OF_CLUSTER = [sys.executable, "-m", "numakin.kubectl", "top", "-A"]
OF_NODE = [sys.executable, "-m", "enforcer", "top"]
INTERRUPTED = {"cluster": 130, "node": 0}


class Traffic(BaseHTTPRequestHandler):
    """One edge, of the cluster and of a node. status: with which it is answered."""

    status = 200
    source = "shop/Deployment/cart"
    relays: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        rates = ("bytes_per_second", "messages_per_second", "bytes_per_s", "messages_per_s", "weight")
        edge = {"source": self.source, "target": "shop/Deployment/db", "kind": "tcp"} | dict.fromkeys(rates, 1.0)
        answer = {
            "edges": [edge], "edges_known": 1, "edges_in_all": 1, "workloads": [], "relays": self.relays, "unseen": [],
            "collector": "tc", "unattributed_bytes": 0, "lost_bytes": 0,
        }  # fmt: skip
        body = json.dumps(answer if self.status == 200 else {"error": "not now"}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Answering:
    """Who is asked: of the cluster by HTTP as an extender, of a node as its enforcer."""

    commands: ClassVar = {"cluster": (OF_CLUSTER, "--extender=http://{}"), "node": (OF_NODE, "--metrics={}")}

    def __init__(self, handler: type[Traffic], address: str) -> None:
        self.handler, self.address = handler, address

    def command(self, whose: str) -> list[str]:
        words, where = self.commands[whose]
        return [*words, where.format(self.address)]


@pytest.fixture
def answering() -> Iterator[Answering]:
    with _serving() as made:
        yield made


@contextmanager
def _serving() -> Iterator[Answering]:
    handler = type("Handler", (Traffic,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield Answering(handler, f"127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("whose", ["cluster", "node"])
def test_what_is_followed_stays_while_nobody_answers_and_goes_on_after(answering, whose):
    with terminal(answering.command(whose)) as seen:
        assert "cart" in seen.shows("shop/Deployment/db")
        answering.handler.status = 503
        assert "cart" in seen.shows("this is as of")
        answering.handler.status, answering.handler.source = 200, "shop/Deployment/web"
        assert "this is as of" not in seen.shows("shop/Deployment/web").rpartition("\x1b[H")[2]
        assert seen.interrupt() == INTERRUPTED[whose]


@pytest.mark.parametrize("whose", ["cluster", "node"])
def test_whoever_ends_it_has_the_terminal_as_it_was(answering, whose):
    """`timeout` and the like: the prompt was on the other screen, without a cursor."""
    with terminal(answering.command(whose)) as seen:
        assert REDRAWN in seen.shows("shop/Deployment/db")
        seen.process.terminate()
        assert "\x1b[?25h" in seen.shows("\x1b[?1049l")
        assert seen.end() == 143


@pytest.mark.parametrize("whose", ["cluster", "node"])
def test_who_never_answered_is_not_waited_for(answering, whose):
    answering.handler.status = 503
    with terminal(answering.command(whose)) as seen:
        assert "Traceback" not in seen.shows("not now")
        assert seen.end() != 0


@pytest.mark.parametrize("whose", ["cluster", "node"])
def test_a_terminal_that_can_not_be_drawn_over_is_told_once(answering, whose):
    """As Emacs' shell, and many a job of CI: it was shown nothing at all."""
    with terminal(answering.command(whose), TERM="dumb") as seen:
        assert REDRAWN not in seen.shows("shop/Deployment/db")
        assert seen.end() == 0


def test_a_pipe_is_told_once_and_in_whole_lines_though_colours_are_asked_for(answering):
    """As jobs of CI do for all their programs: it was drawn over for ever, and names were broken at 80 columns."""
    answer = ask("top", "-A", f"--extender=http://{answering.address}", FORCE_COLOR="1")
    assert (answer.code, REDRAWN in answer.out) == (0, False)


@pytest.mark.parametrize(
    ("whose", "about"),
    [
        ("cluster", "relays, whose peers are hidden behind them: {}"),
        ("node", "{} passes on what it receives: who talks through it is not seen"),
    ],
)
def test_a_pipe_has_each_row_and_each_sentence_on_a_line_of_its_own(answering, whose, about):
    """However long its names are: programs read what is written there."""
    answering.handler.source = source = f"shop/Deployment/{'cart-' * 100}"
    answering.handler.relays = [relay] = [f"shop/Deployment/{'proxy-' * 300}"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    told = subprocess.run(answering.command(whose), capture_output=True, text=True, env=environment, check=True)
    lines = [line.rstrip() for line in told.stdout.splitlines()]
    assert any(source in line and "shop/Deployment/db" in line for line in lines)
    assert about.format(relay) in lines


@pytest.mark.parametrize("whose", ["cluster", "node"])
def test_a_terminal_of_another_encoding_costs_the_characters_that_it_lacks_alone(answering, whose):
    """As the one that a name is cut short with."""
    answering.handler.source = f"shop/Deployment/{'cart-' * 100}"
    with terminal(answering.command(whose), PYTHONIOENCODING="latin-1") as seen:
        assert "Traceback" not in seen.shows("shop/")
        assert seen.interrupt() == INTERRUPTED[whose]


def test_without_traffic_that_is_said_at_a_terminal_too(answering):
    with terminal([*OF_CLUSTER[:-1], "-n", "other", f"--extender=http://{answering.address}"]) as seen:
        seen.shows("no traffic of namespace other is known; -A: of all")
