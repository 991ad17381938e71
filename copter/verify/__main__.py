"""``python -m copter.verify FILE...``."""

import sys

from .judge import main

sys.exit(main(sys.argv[1:]))
