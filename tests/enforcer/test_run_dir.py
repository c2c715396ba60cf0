"""A run folder that is deleted, or on a full file system, costs what is in it, and no container its pin."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.hook.ownership.recorder import spare_of
from lab.standins.patience import PATIENCE_S, until
from lab.standins.runtime.runtime import Runtime
from numakin.process import lock
from tests.enforcer.running import GROUP, Enforcer, cpus


def pinned(runtime: Runtime, name: str) -> bool:
    return bool(cpus(runtime, runtime.run_container(runtime.run_pod(name, annotations=GROUP), "app", cpu_request=1)))


def test_deleted_it_is_made_anew_and_everybody_finds_the_hook_again(enforcer: Enforcer, runtime: Runtime) -> None:
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    until(lambda: enforcer.get("/readyz")[0] == 200, "ready")
    shutil.rmtree(enforcer.run_dir.rename(enforcer.folder / "deleted"))
    assert pinned(runtime, "meanwhile")
    until((enforcer.run_dir / "hook.sock").exists, "the socket")
    assert enforcer.status()["registered"]
    until((enforcer.run_dir / "lock").exists, "the lock")
    enforcer.start().wait(PATIENCE_S)
    assert "another numakin-enforcer" in enforcer.log.read_text()
    assert enforcer.processes[0].poll() is None


@pytest.fixture
def full() -> Iterator[Path]:
    """A file system with no room for another file or byte, at a path that is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="numakin.") as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "nr_inodes=2,size=4k", "none", folder], check=False, capture_output=True
        )
        if mounted.returncode:
            pytest.skip(f"no tmpfs can be mounted: {mounted.stderr.decode().strip()}")
        (Path(folder) / "lock").write_bytes(b"0" * 4096)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_full_it_keeps_nobody_from_being_pinned_and_once_there_is_room_the_hook_is_found(
    full: Path, enforcer: Enforcer, runtime: Runtime
) -> None:
    enforcer.run_dir = full
    enforcer.start()
    runtime.wait_for_plugin(PATIENCE_S)
    assert pinned(runtime, "member")
    assert not (full / "hook.sock").exists()
    subprocess.run(["mount", "-o", "remount,nr_inodes=100,size=1M", str(full)], check=True)
    until((full / "hook.sock").exists, "the socket")
    until(lambda: enforcer.get("/readyz")[0] == 200, "the observer finds the hook")
    until((full / "allocations.json").exists, "what was given")
    until(lambda: not spare_of(full).exists(), "no more is kept in memory")


def test_a_lock_whose_file_was_deleted_is_taken_anew(tmp_path: Path) -> None:
    held = lock.acquire(tmp_path)
    assert lock.renewed(tmp_path, held) == held
    (tmp_path / "lock").unlink()
    anew = lock.renewed(tmp_path, held)
    with pytest.raises(lock.AnotherRunsError):
        lock.acquire(tmp_path)
    assert lock.renewed(tmp_path, anew) == anew


def test_a_lock_that_another_took_meanwhile_is_told(tmp_path: Path) -> None:
    held = lock.acquire(tmp_path)
    (tmp_path / "lock").unlink()
    lock.acquire(tmp_path)
    with pytest.raises(lock.AnotherRunsError):
        lock.renewed(tmp_path, held)
