"""Tests that are marked `alone` run each in an interpreter of its own, with a single thread and nobody else's memory, as
a supervisor is one. In a process with all the other tests gRPC has threads, which a fork tears in two.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lab.standins.patience import PATIENCE_S

ALONE = "NUMAKIN_TEST_ALONE"

WITH_NO_MORE = ("-p", "pytest_timeout", "--confcutdir=tests/numakin/process")
"""What other tests need, and have imported, would be half of what such a run takes."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if ALONE in os.environ or not pyfuncitem.get_closest_marker("alone"):
        return None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {
        ALONE: "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WITH_NO_MORE, pyfuncitem.nodeid]
    done = subprocess.run(
        command,
        cwd=pyfuncitem.config.rootpath,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return True
