"""`python -m enforcer.observer`: this process alone, without a supervisor."""

import sys

from enforcer.observer.process import main

sys.exit(main(sys.argv[1:]))
