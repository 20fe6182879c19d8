"""Fused CPU kernels in C++, compiled at first use and called through JAX's FFI.

`attention.attend` and `features.product` have the values, the gradients and the
dropout bits of the definitions in pure JAX, several times faster on a CPU. `status`
says whether they can be used and why; nothing here is needed where they cannot.
"""

from oodgat_jax.kernels.library import Status, status

__all__ = ["Status", "status"]
