"""`python -m k3lib` is the command `k3`."""

from k3lib.cli import main

raise SystemExit(main())
