"""What the configuration names outside of the program, taken up once at its start: the API server, certificates."""

from __future__ import annotations

import os
import time
from pathlib import Path

from extender.apiserver import own_namespace
from extender.config import ExtenderConfig
from extender.kube.api import Api, ApiError, Unreachable
from extender.kube.config import connect
from extender.kube.tls.own_ca import OwnCa
from extender.scheduler.metrics import Metrics
from numakin.process.log import Log
from numakin.process.options import ConfigError, flag
from numakin.process.threads import Backoff, Threads
from numakin.wire.certificates import BadCertificate, Files, Renewed

SERVICES = ("numakin-extender", "numakin-extender-replicas")
"""The names by which kube-scheduler and enforcers dial."""

NAMESPACE = "numakin"
"""Where the manifests put everything."""

PATIENCE_S = 30.0
"""How long the API server may be away, or have too much to do, as the program starts. One that ends instead is started
again by its kubelet, soon minutes later; which leaves it 60 s to start.
"""

_NEEDS_API = {
    "enforcer_account": "check tokens with",
    "own_ca": "keep its certificates at",
    "authorise_readers": "ask who may read",
}

_log = Log("extender")


def namespace(config: ExtenderConfig) -> str:
    """Where our own objects are."""
    return config.namespace or own_namespace() or NAMESPACE


def connected(config: ExtenderConfig) -> Api | None:
    """None without an API server: then pods are known from their enforcers' reports alone. ConfigError, BadKubeconfig
    when that can't be meant.
    """
    api = connect(config.kubeconfig, os.environ) if config.kube else None
    for option, use in _NEEDS_API.items():
        if api is None and getattr(config, option):
            raise ConfigError(f"{flag(option)} needs an API server to {use}: --kubeconfig, or run as a pod")
    if api is None and config.regroup == "evict":
        raise ConfigError("--regroup evict needs an API server to evict by: --kubeconfig, or run as a pod")
    return api


def own_certificates(config: ExtenderConfig, api: Api | None, threads: Threads) -> OwnCa | None:
    """Certificates of numakin's own CA, made by now; ConfigError when they can't be."""
    if not config.own_ca or api is None:
        return None
    own = OwnCa(api, namespace(config), SERVICES, threads=threads)
    until, failures = time.monotonic() + PATIENCE_S, 0
    while True:
        try:
            own.ensure()
        except (ApiError, Unreachable) as bad:
            failures += 1
            wait_s = max(Backoff().wait_s(failures), bad.retry_after_s)
            if not bad.passing or time.monotonic() + wait_s > until:
                own.stop(0.0)
                raise ConfigError(f"--own-ca: the API server does not give or take the certificates: {bad}") from bad
            _log.warning("no certificates yet: the API server is asked again", why=str(bad), again_in_s=wait_s)
            time.sleep(wait_s)
        else:
            return own


def renewed(port: str, files: Files, metrics: Metrics) -> Renewed | None:
    """None where the port has no TLS; BadCertificate when its files can't be used."""
    if not files.cert:
        return None
    not_taken = metrics.certificates_not_taken.labels(port)

    def complain(why: str) -> None:
        not_taken.inc()
        _log.error("renewed certificate not taken", port=port, why=why)

    certificate = Renewed(files, complain)
    try:
        certificate.current()
    except BadCertificate as bad:
        raise BadCertificate(f"TLS of the {port} port: {bad}") from bad
    return certificate


def written(path: Path, content: bytes) -> None:
    """Whole or not at all: a process that waits for the file may read it the moment it is there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.rename(path)
