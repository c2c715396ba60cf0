"""The runtime launches the enforcer as a plugin of its own."""

import os
import sys
from pathlib import Path

import pytest

from enforcer.settings.config import Config
from lab.standins.patience import until
from lab.standins.runtime.runtime import Runtime
from numakin.process import lock
from tests.enforcer.running import GROUP, Enforcer, cpus, numa_cpus


class TestLaunchedByTheRuntime:
    """An executable NN-name in the plugin folder: file descriptor 3, three environment variables, a drop-in file."""

    @pytest.fixture
    def program(self, enforcer: Enforcer) -> Path:
        program = enforcer.folder / "99-numakin"
        program.write_text(f"#!{sys.executable}\nimport sys\nfrom enforcer.cli.main import main\nsys.exit(main([]))\n")
        program.chmod(0o755)
        return program

    def test_it_takes_its_options_from_the_drop_in_file(self, enforcer: Enforcer, program: Path) -> None:
        drop_in = (
            f'sysfs = "{enforcer.sysfs}"\nmetrics-listen = "{enforcer.metrics}"\nnode-name = "n7"\nobserve = "off"\n'
        )
        with Runtime() as runtime:
            runtime.launch(program, "99", "numakin", drop_in)
            made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
            assert cpus(runtime, made) == numa_cpus(enforcer)[0]
            until(lambda: enforcer.get("/readyz")[0] == 200, "ready")

    def test_containerd_1_7_which_would_not_start_without_it_gets_a_plugin_that_stands_by(self, program: Path) -> None:
        with Runtime(nri_version="0.6.1", version="1.7.24") as runtime:
            runtime.launch(program, "99", "numakin", "sysfss = '/sys'")
            made = runtime.run_container(runtime.run_pod("m", annotations=GROUP), "app", cpu_request=2)
            assert not cpus(runtime, made)
            assert runtime.plugins.names == ["99-numakin"], runtime.plugins.notes

    def test_a_second_one_is_refused_by_name(self, enforcer: Enforcer, program: Path) -> None:
        """The lock's folder is the default one here, as for every launched plugin."""
        held = lock.acquire(Path(Config().run_dir))
        try:
            with Runtime() as runtime:
                runtime.launch(program, "99", "numakin", f'sysfs = "{enforcer.sysfs}"')
                assert any("another numakin-enforcer" in note for note in runtime.plugins.notes), runtime.plugins.notes
        finally:
            os.close(held)

    def test_a_bad_drop_in_file_is_refused_by_name(self, program: Path) -> None:
        with Runtime() as runtime:
            runtime.launch(program, "99", "numakin", "sysfss = '/sys'")
            assert any("unknown key 'sysfss'" in note for note in runtime.plugins.notes), runtime.plugins.notes
