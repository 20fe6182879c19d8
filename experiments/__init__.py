"""Binaries that train, measure and draw: one per table or figure, run with -m."""

import sys

if sys.argv[:1] == ["-m"]:  # Python is looking for the binary that it is to run
    from experiments.support import kernels_ahead

    kernels_ahead.begin(sys.argv[1:])
