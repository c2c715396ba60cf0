"""`python -m enforcer.hook`: this process alone, without a supervisor."""

import sys

from enforcer.hook.process import main

sys.exit(main(sys.argv[1:]))
