"""The bypass by itself, whose rounds come soon after each other: `python -m tests.enforcer.bypass.hurried`, with the
options of `numakin-enforcer run`.
"""

import sys
from pathlib import Path

from enforcer.bypass.process import main
from enforcer.settings.options import configured, run_options
from numakin.process import lock, log

ROUND_S = 0.5
"""Of what is looked at every ten seconds otherwise."""

if __name__ == "__main__":
    config = configured(run_options().parse_args(sys.argv[1:]))
    log.set_up(config.log_level, config.log_format)
    lock.acquire(Path(config.run_dir))
    sys.exit(main(sys.argv[1:], read_back_s=ROUND_S, relist_s=ROUND_S))
