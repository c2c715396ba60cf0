"""All targets, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.fuzz.target import Target
from tests.fuzz.targets import apiserver, kernel, local, machine, nri, report, runtime, scheduler, texts

TARGETS: Mapping[str, Target] = {
    target.name: target
    for module in (nri, report, local, scheduler, machine, kernel, texts, runtime, apiserver)
    for target in module.TARGETS
}
