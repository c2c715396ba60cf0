"""What the doctor says of the kernel's own moving of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.cli.doctor import examine
from enforcer.cli.findings import Finding
from enforcer.machine.memory import numa_balancing
from enforcer.settings.config import Config


def findings(procfs: Path) -> list[Finding]:
    config = Config(procfs=str(procfs), podresources_socket="off")
    return [entry for entry in examine(config) if entry.topic == "memory"]


@pytest.mark.parametrize(
    ("content", "grade", "words", "left_behind"),
    [
        (None, "good", "was built without NUMA balancing", "stays there"),
        ("0\n", "good", "NUMA balancing is off", "stays there"),
        ("1\n", "good", "NUMA balancing is on", "follows its CPUs slowly"),
        ("2\n", "good", "for memory tiers alone (2)", "stays there"),
        ("3\n", "good", "is on, for memory tiers too (3)", "follows its CPUs slowly"),
        ("4\n", "note", "in a mode that numakin does not know: 4", ""),
        ("much\n", "bad", "not a number", ""),
    ],
)
def test_it_says_what_becomes_of_memory_that_a_move_leaves(
    tmp_path: Path, content: str | None, grade: str, words: str, left_behind: str
) -> None:
    """Nothing of it is wrong: it is told because it is what an operator wonders about."""
    (tmp_path / "sys/kernel").mkdir(parents=True)
    if content is not None:
        (tmp_path / "sys/kernel/numa_balancing").write_text(content)
    (finding,) = findings(tmp_path)
    assert finding.grade == grade
    assert words in finding.text
    assert left_behind in finding.text


def test_this_kernel_is_asked() -> None:
    file = Path("/proc/sys/kernel/numa_balancing")
    assert numa_balancing() == (int(file.read_text()) if file.exists() else None)
    (finding,) = findings(Path("/proc"))
    assert finding.grade == "good"
