"""`python -m enforcer.hook`: how the supervisor starts this process."""

import sys

from enforcer.hook.process import main

sys.exit(main(sys.argv[1:]))
