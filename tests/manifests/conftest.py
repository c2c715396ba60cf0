from typing import Any

import pytest

from tests.manifests.capabilities import as_root, named
from tests.manifests.rendered import WHOLE, rendered

__all__ = ["as_root", "named"]


@pytest.fixture(params=WHOLE)
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return rendered(request.param)
