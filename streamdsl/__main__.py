"""`python -m streamdsl`."""

import sys

from streamdsl.cli import main

sys.exit(main())
