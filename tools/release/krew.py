"""The plugin for Krew: an archive with the one file and its licence, and the manifest that Krew reads."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping

import yaml

PROGRAM = "kubectl-numakin"
API = "krew.googlecontainertools.github.com/v1alpha2"
"""Krew's pkg/constants; its rules are those of internal/index/validation."""

SYSTEMS = ["linux", "darwin"]

DESCRIPTION = """\
numakin keeps pods that talk to each other on one NUMA node. This plugin asks it, with your own kubeconfig and rights:
who is where and why, who talks to whom, where a manifest's pods would go, and what is wrong on which node.
"""
CAVEATS = """\
It needs Python {oldest} or newer, and numakin installed in the cluster. `replay` needs numakin[extender] from pip.
"""


def archive(files: Mapping[str, tuple[bytes, int]], time: int) -> bytes:
    """A .tar.gz of these files, each with its content and its mode. time: of all, in seconds since 1970."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name in sorted(files):
            content, mode = files[name]
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), mode, time
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def manifest(version: str, url: str, packed: bytes, oldest: str, short: str) -> str:
    """url: where the archive is published. short: one line that says what numakin is."""
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": SYSTEMS}]},
        "uri": url,
        "sha256": hashlib.sha256(packed).hexdigest(),
        "files": [{"from": name, "to": "."} for name in (PROGRAM, "LICENSE")],
        "bin": PROGRAM,
    }
    spec = {
        "version": f"v{version}",
        "shortDescription": short,
        "description": DESCRIPTION,
        "caveats": CAVEATS.format(oldest=oldest),
        "platforms": [platform],
    }
    content = {"apiVersion": API, "kind": "Plugin", "metadata": {"name": "numakin"}, "spec": spec}
    return yaml.safe_dump(content, sort_keys=False, width=1000)
