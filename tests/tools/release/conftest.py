from __future__ import annotations

import pytest

from tests.tools.release.checkout import Checkout, copied


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return copied(tmp_path_factory.mktemp("release") / "checkout")
