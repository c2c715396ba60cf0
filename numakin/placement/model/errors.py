"""What placement refuses to build: one root, one class for each kind of bad input."""


class PlacementError(ValueError):
    """The root of every error that this package raises."""


class BadIdList(PlacementError):
    """Text that is not a list of ids in the kernel's format."""


class BadTopology(PlacementError):
    """A machine that contradicts itself, such as a CPU on two NUMA nodes, or a setting that does not suit it."""


class BadQuantity(PlacementError):
    """Text that is not a Kubernetes resource quantity."""


class BadTerms(PlacementError):
    """What a pod says of nodes that can't be read."""


class AlreadyHeld(PlacementError):
    """A placement that would share CPUs which another container holds exclusively."""


class BadTraffic(PlacementError):
    """Flows, costs or bounds of the graph that make no sense, such as a negative count."""
