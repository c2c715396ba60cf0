"""What differs between releases of Kubernetes. Everything else is written for the newest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.processes import free_port


@dataclass(frozen=True, slots=True)
class Release:
    """minor: of the version 1.MINOR."""

    minor: int

    @property
    def tokens_name_nodes(self) -> bool:
        """Whether a TokenReview shows on which node the token's pod runs: what `--enforcer-account` needs."""
        return self.minor >= 30

    @property
    def preempts_through_extenders(self) -> bool:
        """1.20's kube-scheduler never hands its extenders to what preempts: the preempt verb is not called."""
        return self.minor >= 21

    @property
    def insecure_port_off(self) -> tuple[str, ...]:
        """Else the controller-manager and the scheduler of old serve a second port, on all addresses."""
        return ("--port=0",) if self.minor < 24 else ()

    @property
    def apply_options(self) -> tuple[str, ...]:
        """For kubectl apply: an older API server drops the fields that it does not know."""
        return ("--validate=strict",) if self.minor >= 30 else ("--validate=false",)

    @property
    def kubelet_options(self) -> tuple[str, ...]:
        """Before 1.24 a kubelet needs an option to use a runtime other than docker."""
        return ("--container-runtime=remote",) if self.minor < 24 else ()

    def kubelet_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """The KubeletConfiguration: newer ones refuse cgroup v1 unless configured otherwise."""
        return {**config, "failCgroupV1": False} if self.minor >= 31 else config

    def known(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """An object of the manifests in a version that the API server has; what we use of it is the same there."""
        version = manifest["apiVersion"]
        if self.minor < 21:
            version = _BEFORE_1_21.get(manifest["kind"], version)
        return {**manifest, "apiVersion": version}

    def scheduler_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """The KubeSchedulerConfiguration as this kube-scheduler reads it; what we use of v1 is the same in v1beta1."""
        if self.minor >= 25:
            return config
        if self.minor >= 22:
            return {**config, "apiVersion": "kubescheduler.config.k8s.io/v1beta2"}
        # Else it takes a fixed port on all addresses.
        address = f"127.0.0.1:{free_port()}"
        served = {"healthzBindAddress": address, "metricsBindAddress": address}
        return {**config, "apiVersion": "kubescheduler.config.k8s.io/v1beta1", **served}


_BEFORE_1_21 = {"PodDisruptionBudget": "policy/v1beta1"}
