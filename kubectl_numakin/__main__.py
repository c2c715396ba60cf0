import sys

from kubectl_numakin.main import main

sys.exit(main())
