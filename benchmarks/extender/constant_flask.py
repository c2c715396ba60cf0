"""A constant Flask handler under gunicorn: what a scheduler extender of the usual kind takes at the least.

python -m benchmarks.extender.constant_flask NODES     prints HOST:PORT and serves until it is killed
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, request
from gunicorn.app.base import BaseApplication

from benchmarks.extender.server import constants

THREADS = 4
"""Workers of the threaded kind, which keep connections open, as kube-scheduler does."""

KEEPALIVE_S = 75


def flask_app(nodes: int) -> Flask:
    """Answers as long as the extender's own, whatever is asked; the body is read."""
    app = Flask("constant", static_folder=None)
    for verb, constant in constants(nodes).items():
        app.add_url_rule(f"/{verb}", verb, _view(constant.answer.body), methods=["POST"])
    return app


def _view(body: bytes) -> Callable[[], Response]:
    def view() -> Response:
        request.get_data(cache=False)
        return Response(body, mimetype="application/json")

    return view


class _Server(BaseApplication):
    """gunicorn with one worker, told what to serve by this program instead of its command line."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        super().__init__()

    def load_config(self) -> None:
        settings = {
            "bind": "127.0.0.1:0", "worker_class": "gthread", "threads": THREADS, "keepalive": KEEPALIVE_S,
            "loglevel": "error", "control_socket_disable": True, "when_ready": _say_where,
        }  # fmt: skip
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._app


def _say_where(arbiter: Any) -> None:
    (listener,) = arbiter.LISTENERS
    host, port = listener.sock.getsockname()
    print(json.dumps({"http": f"{host}:{port}"}), flush=True)


if __name__ == "__main__":
    _Server(flask_app(int(sys.argv[1]))).run()
