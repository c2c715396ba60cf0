"""What the `kubernetes` package makes of a kubeconfig, checked: it takes much that can't work without a word."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from numakin.kubeconfig import BadKubeconfig


@contextmanager
def overheard() -> Iterator[list[str]]:
    """What the package logs, by Python's root logger, where it should raise; it is kept from the log."""
    logged: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        logged.append(record.getMessage())
        return False

    root = logging.getLogger()
    root.addFilter(keep)
    try:
        yield logged
    finally:
        root.removeFilter(keep)


def check_loaded(configuration: Any, user: Mapping[str, Any], logged: Sequence[str]) -> None:
    """Of what the package made of it. BadKubeconfig when its certificates can't be used, or a login gave nothing.

    logged: what the package logged.
    """
    if configuration.ssl_ca_cert:
        try:
            ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        except OSError as bad:  # ssl.SSLError is one
            raise BadKubeconfig("the certificate authority holds no certificate (PEM)") from bad
    if configuration.cert_file:
        try:
            ssl.create_default_context().load_cert_chain(configuration.cert_file, configuration.key_file)
        except OSError as bad:
            why = bad.reason if isinstance(bad, ssl.SSLError) and bad.reason else "no PEM"
            raise BadKubeconfig(f"client certificate and key can't be used together: {why}") from bad
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        raise BadKubeconfig(f"the user's exec command gave no credentials; run it by hand: {', '.join(logged)}")
