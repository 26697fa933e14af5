"""`python -m mbdp` is the command `mbdp`."""

import sys

from mbdp.experiments.cli import main

sys.exit(main())
