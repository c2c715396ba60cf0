"""What placement refuses to build: one root, one class for each kind of bad input."""


class PlacementError(ValueError):
    """The root of every error that this package raises."""


class BadIdList(PlacementError):
    """Text that is not a list of ids in the kernel's format."""


class BadTopology(PlacementError):
    """A machine that contradicts itself, such as a CPU on two NUMA nodes."""


class BadQuantity(PlacementError):
    """Text that is not a Kubernetes resource quantity."""


class AlreadyHeld(PlacementError):
    """A placement that would share CPUs which another container holds exclusively."""
