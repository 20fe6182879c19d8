"""Graph learning with out-of-distribution nodes, in JAX."""
