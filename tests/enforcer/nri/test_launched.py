"""A plugin that the runtime launches: a process with its socket at descriptor 3 and three environment variables."""

import os
import sys
from pathlib import Path

import pytest

from lab.standins.runtime import Runtime

CHECKOUT = Path(__file__).parents[3]

# An absolute interpreter, and -I so that nothing of the environment matters: the runtime gives none.
PROGRAM = """#!{python} -I
import os, sys
sys.path.insert(0, {checkout!r})
from enforcer.nri.handlers import Handlers
from enforcer.nri.plugin import Plugin
from numakin.process.loop import Loop
from enforcer.nri.transport import launched_by_runtime
from numakin.wire import nri_pb2 as nri

told = {{}}

def configure(config, runtime):
    if config == "bad":
        raise ValueError("unknown option 'bad'")
    told["config"] = config

def create(pod, container):
    adjust = nri.ContainerAdjustment()
    adjust.annotations["environment"] = " ".join(sorted(os.environ.keys() - {{"LC_CTYPE"}}))
    adjust.annotations["arguments"] = str(len(sys.argv) - 1)
    adjust.annotations["config"] = told["config"]
    adjust.linux.resources.cpu.cpus = "1-2"
    return adjust, []

identity, transport = launched_by_runtime(os.environ)
loop = Loop()
Plugin(loop, identity, Handlers(configure=configure, create_container=create), transport).start()
loop.run()
open({ended!r}, "w").close()
"""


@pytest.fixture
def ended(tmp_path):
    os.mkfifo(tmp_path / "ended")
    return tmp_path / "ended"


@pytest.fixture
def program(tmp_path, ended):
    path = tmp_path / "99-numakin"
    path.write_text(PROGRAM.format(python=sys.executable, checkout=str(CHECKOUT), ended=str(ended)))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["0.6.1", "0.8.0"])
def test_it_is_configured_by_the_runtime_and_pins(program, ended, version):
    with Runtime(nri_version=version) as runtime:
        runtime.launch(program, "99", "numakin", "reserved=0-1\n")
        assert runtime.plugins.names == ["99-numakin"]
        container = runtime.create_container(runtime.run_pod("cart"), "server")
        assert container.cpus == "1-2"
        assert container.annotations == {
            "environment": "NRI_PLUGIN_IDX NRI_PLUGIN_NAME NRI_PLUGIN_SOCKET",
            "arguments": "0",
            "config": "reserved=0-1\n",
        }


def test_it_ends_when_the_runtime_does(program, ended):
    with Runtime() as runtime:
        runtime.launch(program, "99", "numakin")
        runtime.plugins.hang_up()
        assert ended.read_bytes() == b""  # waits until the program has opened it, with its last line


def test_it_ends_when_its_configuration_is_bad(program, ended):
    with Runtime() as runtime:
        runtime.launch(program, "99", "numakin", "bad")
        assert runtime.plugins.notes == ["plugin 99-numakin: configuration refused: unknown option 'bad'"]
        assert ended.read_bytes() == b""
