from collections.abc import Iterator

import pytest

from lab.standins.apiserver import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running
