"""Binaries that train, measure and draw: one per table or figure, run with -m."""
