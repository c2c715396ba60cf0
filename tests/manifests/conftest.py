import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.capabilities import as_root, named
from tests.manifests.rendered import MANIFESTS, WHOLE, rendered

__all__ = ["as_root", "named"]


@pytest.fixture(params=WHOLE)
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return rendered(request.param)


@pytest.fixture
def overlay_of() -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """What a user's own overlay of a base and components renders; paths as from a folder of `manifests`."""
    with tempfile.TemporaryDirectory(dir=MANIFESTS) as folder:

        def objects(base: str, *components: str) -> list[dict[str, Any]]:
            content = {"namespace": "numakin", "resources": [base], "components": [*components]}
            (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(content))
            return rendered(folder)

        yield objects
