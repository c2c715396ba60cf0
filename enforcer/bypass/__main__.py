"""`python -m enforcer.bypass`: how the supervisor starts this process."""

import sys

from enforcer.bypass.process import main

sys.exit(main(sys.argv[1:]))
