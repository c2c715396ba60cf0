from tests.attack.secured import site
from tests.extender.conftest import extender

__all__ = ["extender", "site"]
