"""The page's own files, as `web/build.mjs` made them: the only things that the browser is allowed to load.

Everything is addressed relative to the page, so that it also works behind a proxy's path, such as that of
`kubectl proxy`.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from flask import Flask, Response, request, send_from_directory

ASSETS = Path(__file__).parent / "assets"

FILES = ("app.js", "app.css", "icon.svg")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""Content-Security-Policy: nothing from elsewhere, nothing inline, no frame, no markup made from text."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


NAMESPACE = 'name="numakin-namespace" content="{}"'
"""In the page, for the commands that it names; the sources have that of the manifests."""


def add_page(app: Flask, namespace: str) -> None:
    """The page at `/`, and its files beside it. namespace: where numakin runs."""
    text = (ASSETS / "index.html").read_text()
    text = text.replace(NAMESPACE.format("numakin"), NAMESPACE.format(escape(namespace)))
    app.add_url_rule("/", "page", lambda: _page(text))
    for name in FILES:
        app.add_url_rule(f"/assets/{name}", f"page_{name}", lambda name=name: _file(name))


def _page(text: str) -> Response:
    response = Response(text, mimetype="text/html", headers={"Cache-Control": "no-cache", **HEADERS})
    response.add_etag()
    response.make_conditional(request)
    return response


def _file(name: str) -> Response:
    """Asked for anew each time, and sent only when it has changed."""
    response = send_from_directory(ASSETS, name, max_age=0)
    response.headers.update(HEADERS)
    return response
