"""Run under the enforcer container's capabilities: writes the cpuset of the cgroup that is given, speaks to a socket
that is root's alone, and says what it could.
"""

import socket
import sys
import tempfile
from pathlib import Path

from enforcer.machine.cgroup import CgroupTree

tree = CgroupTree.discover()
whole = tree.cpuset("/")
assert whole is not None
tree.set_cpuset(sys.argv[1], whole.effective_cpus, whole.effective_mems)
print("cpuset")
with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as runtime:
    path = Path(folder) / "cri.sock"
    runtime.bind(str(path))
    path.chmod(0o660)
    runtime.listen()
    with socket.socket(socket.AF_UNIX) as enforcer:
        enforcer.connect(str(path))
    print("socket")
