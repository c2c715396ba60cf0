import sys

from numakin.kubectl.main import main

sys.exit(main())
