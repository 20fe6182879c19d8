"""A loss term of ten lines, registered from your own script, beside OODGAT's own."""

# %%
# A regularizer gets outputs, split and hyper-parameters and returns a scalar. This one
# lowers the OOD attention of labeled nodes, which are surely known. Its weight is the
# hyper-parameter of its name.
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import oodgat_jax as og
from oodgat_jax.losses import masked_mean


def trust(outputs, split, hyper):
    """Lowers the OOD attention of labeled nodes."""
    scores = jax.nn.sigmoid(jnp.concatenate(outputs.attention, axis=-1).mean(-1))
    return masked_mean(scores, split.train)


og.register_regularizer("trust", trust, needs=("attention",))

# %%
# The contract, checked on a small graph, whole and in shards: it raises an error that
# says what is wrong, or nothing.
og.testing.check_regularizer(trust, hyper={"trust": 1.0}, needs=("attention",))

# %%
# Several weights of it, everything else the same.
own = og.METHODS["oodgat"].regularizers
weights, values = (0.0, 0.1, 1.0), []
for weight in weights:
    result = og.run(
        "digits",
        "oodgat",
        splits=1,
        seeds=3,
        regularizers=(*own, "trust"),
        settings={"trust": weight, "max_steps": 150},
    )
    values.append(100 * result.metrics["ATT"]["auroc"])
    print(f"trust = {weight:<4} AUROC {values[-1].round(1)}")

figure, axes = plt.subplots(figsize=(5, 3))
axes.plot(np.arange(len(weights)), values, "o", color="#3b82c4")
axes.plot(np.arange(len(weights)), np.mean(values, 1), color="#e0752d", label="mean")
axes.set_xticks(np.arange(len(weights)), [f"{weight:g}" for weight in weights])
axes.set_xlabel("weight of trust")
axes.set_ylabel("AUROC, three seeds")
axes.legend()
