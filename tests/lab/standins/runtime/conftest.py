import pytest

from lab.standins.runtime import Runtime
from tests.lab.standins.runtime.plugin import LATE_S


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nri.sock"


@pytest.fixture
def runtime(path):
    with Runtime(path, request_timeout_s=LATE_S) as runtime:
        yield runtime
