"""An embedded NRI runtime for tests and the demo: `Runtime` is all that a user needs."""

from standins.runtime.events import CriError
from standins.runtime.records import Container, Pod
from standins.runtime.runtime import Runtime
from standins.runtime.versions import VERSIONS

__all__ = ["VERSIONS", "Container", "CriError", "Pod", "Runtime"]
