"""What the tutorial makes of the examples."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_copy_of_the_tutorial_opts_both_pods_in() -> None:
    (command,) = re.findall(r"^    (sed .+) > copy\.yaml$", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE)
    made = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    pods = [entry["spec"]["template"] for entry in yaml.safe_load_all(made.stdout) if entry["kind"] == "Deployment"]
    assert [pod["metadata"]["annotations"] for pod in pods] == [{"group.numakin.io": "web"}] * 2
