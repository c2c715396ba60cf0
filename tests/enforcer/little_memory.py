"""numakin-enforcer, of which members leave at most 16 MiB behind at a time."""

import sys

from enforcer.cli.main import main
from enforcer.observer.moves import rounds

rounds.MOST_MEMORY = 16 << 20

if __name__ == "__main__":
    sys.exit(main())
