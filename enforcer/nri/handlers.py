"""What the enforcer's agent gives the session: a function for each call that it wants."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from enforcer.nri.events import Runtime
from numakin.wire import nri_pb2 as nri

Updates: TypeAlias = Sequence[nri.ContainerUpdate]
Creation: TypeAlias = tuple[nri.ContainerAdjustment | None, Updates]

OnPod: TypeAlias = Callable[[nri.PodSandbox], None]
OnContainer: TypeAlias = Callable[[nri.PodSandbox, nri.Container], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """Functions over decoded messages; the subscription is derived from which ones there are.

    All run in the session's thread, one at a time. `Updates` are changes to *other* containers (any, in
    `synchronize` and `update_container`). What a handler raises is logged and counted, and the runtime gets an empty
    success: no adjustment, no update, never a failed container. `configure` alone is different: what it raises
    refuses the configuration, so the runtime drops the plugin and logs why.
    """

    configure: Callable[[str, Runtime], None] | None = None
    synchronize: Callable[[Sequence[nri.PodSandbox], Sequence[nri.Container]], Updates] | None = None
    shutdown: Callable[[], None] | None = None

    create_container: Callable[[nri.PodSandbox, nri.Container], Creation] | None = None
    update_container: Callable[[nri.PodSandbox, nri.Container, nri.LinuxResources], Updates] | None = None
    stop_container: Callable[[nri.PodSandbox, nri.Container], Updates] | None = None

    post_create_container: OnContainer | None = None
    start_container: OnContainer | None = None
    post_start_container: OnContainer | None = None
    post_update_container: OnContainer | None = None
    remove_container: OnContainer | None = None

    run_pod_sandbox: OnPod | None = None
    post_update_pod_sandbox: OnPod | None = None
    stop_pod_sandbox: OnPod | None = None
    remove_pod_sandbox: OnPod | None = None

    # Whether a CreateContainer, not decoded yet, may be about a container that gets an adjustment. Any other one is
    # answered at once and handed to `create_container` afterwards, before the next event that is decoded.
    concerns: Callable[[bytes], bool] | None = None
    # What such a `create_container` changes for others: its answer had left before that was known.
    left_over: Callable[[Updates], None] | None = None

    # (pod, its overhead, the sum of its containers)
    update_pod_sandbox: Callable[[nri.PodSandbox, nri.LinuxResources, nri.LinuxResources], None] | None = None
    # The reason to reject the creation, or "" to let it pass.
    validate_container_adjustment: Callable[[nri.ValidateContainerAdjustmentRequest], str] | None = None
