"""`python -m enforcer`: the same as `numakin-enforcer`."""

import sys

from enforcer.cli.main import main

sys.exit(main())
