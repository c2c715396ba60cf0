"""How to reach the API server: by a kubeconfig, as a pod of the cluster, or not at all."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from extender.kube.api import Api
from numakin.kubeconfig import BadKubeconfig, chosen
from numakin.process.log import Log
from numakin.wire.verification import verifying

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

KEPT = 32
"""Connections that wait to be used again, after watches, checks of tokens and what is published: each one that is
opened anew costs both ends a handshake.
"""

QUIET_S, PROBE_S, PROBES = 30, 5, 3
"""A connection on which nothing came for so long is probed, and is dead after so many probes without an answer: those
45 s are what client-go gives a silent API server. A watch may be silent for minutes, and knows by nothing else that its
API server, or what was between, is gone without a word.
"""

_log = Log(__name__)


def connect(kubeconfig: str, environment: Mapping[str, str], account: Path = ACCOUNT) -> Api | None:
    """The API server, or None when nothing says where one is. Nothing is asked of it yet.

    kubeconfig: a file; empty: the pod's own service account, where there is one, in the folder `account`. BadKubeconfig
    when they can't be used.
    """
    in_cluster = environment.get("KUBERNETES_SERVICE_HOST") and (account / "token").exists()
    if not kubeconfig and not in_cluster:
        return None
    # Half a second and 45 MB: only who needs it pays for it.
    import yaml  # noqa: PLC0415
    from kubernetes import client, config  # noqa: PLC0415
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415
    from kubernetes.utils.keepalive import tcp_keepalive_socket_options  # noqa: PLC0415

    configuration: Any = client.Configuration()
    configuration.connection_pool_maxsize = KEPT
    configuration.socket_options = tcp_keepalive_socket_options(QUIET_S, PROBE_S, PROBES)
    bad_files = (
        config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError,
    )  # fmt: skip
    user: Mapping[str, Any] = {}
    logged: list[str] = []
    try:
        if kubeconfig:
            user = chosen([kubeconfig]).user
            with _overheard() as logged:
                config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            token, ca = str(account / "token"), str(account / "ca.crt")
            loader = InClusterConfigLoader(token, ca, environ=environment)  # type: ignore[no-untyped-call]
            loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
            configuration.refresh_api_key_hook = _forbearing(configuration.refresh_api_key_hook, bad_files)
        _check_loaded(configuration, user, logged)
    except bad_files as bad:
        named = f"kubeconfig {kubeconfig}" if kubeconfig else f"service account {account}"
        raise BadKubeconfig(f"{named}: {' '.join(str(bad).split())}") from bad
    made = client.ApiClient(configuration)
    # The system's authorities take a twentieth of a second to read: none of them counts for plain HTTP.
    if configuration.verify_ssl and not configuration.host.startswith("http:"):
        made.rest_client.pool_manager.connection_pool_kw["ssl_context"] = verifying(configuration.ssl_ca_cert)
    return Api(made, bad_login=config.ConfigException)


def _forbearing(refresh: Callable[[Any], None], unusable: tuple[type[Exception], ...]) -> Callable[[Any], None]:
    """The token's file is read again every minute, since the kubelet renews it; while it can't be, the last token
    serves on.
    """

    def refreshed(configuration: Any) -> None:
        try:
            refresh(configuration)
        except unusable as bad:
            _log.warning("service account token not read again", error=str(bad))

    return refreshed


@contextmanager
def _overheard() -> Iterator[list[str]]:
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


def _check_loaded(configuration: Any, user: Mapping[str, Any], logged: Sequence[str]) -> None:
    """Checks what the package made of a kubeconfig, since it takes much that can't work without a word. BadKubeconfig
    when its certificates can't be used, or a login gave nothing. logged: what the package logged.
    """
    if configuration.ssl_ca_cert:
        try:
            ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        except OSError as bad:  # ssl.SSLError is one
            raise BadKubeconfig("the certificate authority holds no certificate (PEM)") from bad
    if configuration.cert_file:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(configuration.cert_file, configuration.key_file)
        except OSError as bad:
            why = bad.reason if isinstance(bad, ssl.SSLError) and bad.reason else "no PEM"
            raise BadKubeconfig(f"client certificate and key can't be used together: {why}") from bad
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        raise BadKubeconfig(f"the user's exec command gave no credentials; run it by hand: {', '.join(logged)}")
