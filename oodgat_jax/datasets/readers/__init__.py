"""Readers of raw files, one module per format."""
