"""What differs between releases of Kubernetes. Everything else is written for the newest."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from numakin.process.ports import free_port


@dataclass(frozen=True, slots=True)
class Release:
    """minor: of the version 1.MINOR."""

    minor: int

    @property
    def preempts_through_extenders(self) -> bool:
        """Before 1.22 kube-scheduler does not hand its extenders to what preempts: the preempt verb is not called."""
        return self.minor >= 22

    @property
    def profiles_have_percentages(self) -> bool:
        """Whether a kube-scheduler's profile may have a percentageOfNodesToScore of its own."""
        return self.minor >= 25

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

    @property
    def api_server_options(self) -> tuple[str, ...]:
        """Before 1.23 ephemeral containers are off unless asked for. Before 1.24 all betas are served, which takes a
        quarter of what the server computes to start, unless told otherwise.
        """
        served = () if self.minor >= 24 else (f"--runtime-config={_SERVED_BETAS}",)
        return served if self.minor >= 23 else (f"--feature-gates={_EPHEMERAL}=true", *served)

    @property
    def resizes_in_place(self) -> bool:
        """Whether a pod's resources can be changed while it runs, without a feature gate."""
        return self.minor >= 33

    @property
    def says_free_devices(self) -> bool:
        """Whether its kubelet answers which devices there are (GetAllocatableResources)."""
        return self.minor >= 23

    @property
    def has_pod_resources(self) -> bool:
        """Whether a pod may have resources of its own (`spec.resources`) without a feature gate."""
        return self.minor >= 34

    @property
    def resizes_pod_resources(self) -> bool:
        """Whether those can be changed while the pod runs, without a feature gate."""
        return self.minor >= 36

    @property
    def has_scheduling_groups(self) -> bool:
        """Whether it has PodGroups as SCHEDULING_GROUPS names them: they are alpha, and change with each release."""
        return self.minor == 36

    def kubelet_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """The KubeletConfiguration: newer ones refuse cgroup v1 unless configured otherwise."""
        if self.minor < 23:
            return {**config, "featureGates": {_EPHEMERAL: True}}
        return {**config, "failCgroupV1": False} if self.minor >= 31 else config

    def ephemeral(self, containers: list[dict[str, Any]]) -> dict[str, Any]:
        """A merge patch of a pod's subresource `ephemeralcontainers`, which was an object of its own before 1.22."""
        return (
            {"spec": {"ephemeralContainers": containers}} if self.minor >= 22 else {"ephemeralContainers": containers}
        )

    def known(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """An object of the manifests in a version that the API server has; what we use of it is the same there."""
        version = manifest["apiVersion"]
        if self.minor < 21:
            version = _BEFORE_1_21.get(manifest["kind"], version)
        known = {**manifest, "apiVersion": version}
        return _without_sleep(known) if self.minor < 30 and manifest["kind"] == "Deployment" else known

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


def _without_sleep(deployment: dict[str, Any]) -> dict[str, Any]:
    """Older ones do not know it, and refuse what is left: something to be done before a stop that is nothing."""
    made = copy.deepcopy(deployment)
    for container in made["spec"]["template"]["spec"]["containers"]:
        if "sleep" in container.get("lifecycle", {}).get("preStop", {}):
            del container["lifecycle"]
    return made


SCHEDULING_GROUPS = "scheduling.k8s.io/v1alpha2"
"""The API of PodGroups in 1.36."""

SCHEDULING_GROUPS_GATES = (
    "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true",
)
"""An option of the API server, the controller-manager and the scheduler."""

_EPHEMERAL = "EphemeralContainers"
_SERVED_BETAS = "api/beta=false,policy/v1beta1=true,discovery.k8s.io/v1beta1=true"
"""What is no beta since 1.21: disruption budgets, and slices of endpoints."""
_BEFORE_1_21 = {"PodDisruptionBudget": "policy/v1beta1"}
