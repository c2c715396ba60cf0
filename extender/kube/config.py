"""How to reach the API server: by a kubeconfig, as a pod of the cluster, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from extender.kube.api import Api

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class BadKubeconfig(ValueError):
    """The kubeconfig named can't be used, worded for the person who named it."""


def connect(kubeconfig: str, environment: Mapping[str, str]) -> Api | None:
    """The API server, or None when nothing says where one is. Nothing is asked of it yet.

    kubeconfig: a file; empty: the pod's own service account, where there is one. BadKubeconfig when the file can't be
    used.
    """
    if not kubeconfig and not _in_cluster(environment):
        return None
    # Half a second and 45 MB: only who needs it pays for it.
    import yaml  # noqa: PLC0415
    from kubernetes import client, config  # noqa: PLC0415

    configuration = client.Configuration()
    if kubeconfig:
        try:
            config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (
            config.ConfigException,
            yaml.YAMLError,
            OSError,
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
        ) as bad:
            raise BadKubeconfig(f"kubeconfig {kubeconfig}: {bad}") from bad
    else:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    return Api(client.ApiClient(configuration))


def _in_cluster(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (ACCOUNT / "token").exists()
