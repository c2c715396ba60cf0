"""A process of the enforcer by itself, which reads cgroups back soon after each other: `python -m tests.enforcer.hurried`
hook or bypass, with the options of `numakin-enforcer run`.
"""

import sys
from importlib import import_module
from pathlib import Path

from enforcer.settings.options import configured, run_options
from numakin.process import lock, log

SOON = {"hook": {"read_back_s": 0.3}, "bypass": {"read_back_s": 0.5, "relist_s": 0.5}}
"""Of what is looked at every ten seconds otherwise."""

if __name__ == "__main__":
    process, *options = sys.argv[1:]
    config = configured(run_options().parse_args(options))
    log.set_up(config.log_level, config.log_format)
    lock.acquire(Path(config.run_dir))
    sys.exit(import_module(f"enforcer.{process}.process").main(options, **SOON[process]))
