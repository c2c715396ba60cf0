"""An embedded NRI runtime for tests and the demo: `Runtime` is all that a user needs."""

from lab.standins.runtime.events import CriError
from lab.standins.runtime.records import Container, Pod
from lab.standins.runtime.runtime import Runtime
from lab.standins.runtime.versions import VERSIONS

__all__ = ["VERSIONS", "Container", "CriError", "Pod", "Runtime"]
