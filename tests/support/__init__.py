"""Helpers of the tests: made data, oracles, ways to call binaries."""
