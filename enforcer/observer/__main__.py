"""`python -m enforcer.observer`: how the supervisor starts this process."""

import sys

from enforcer.observer.process import main

sys.exit(main(sys.argv[1:]))
