import pytest


@pytest.fixture
def socket_path(tmp_path):
    return tmp_path / "nri.sock"
