"""``python -m copter_frontends.cli``."""

from copter_frontends.cli import main

main()
