"""Graphs sharded over devices: where nodes are, how shards are built, what it costs."""
