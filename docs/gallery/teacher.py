"""A method whose weights are averaged while it trains; the average teaches."""

# %%
# `customize` gets the assembled task and returns the task to train. What a run carries
# beside its parameters is its auxiliary state: here the average.
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import oodgat_jax as og
from oodgat_jax.graphs import reductions


def with_teacher(task, module):
    """Adds an average of the parameters that teaches, and that predicts."""

    def loss(params, aux, graph, run, step, key):
        taught = jax.nn.softmax(module.apply(aux, graph).logits)
        learned = jax.nn.log_softmax(module.apply(params, graph).logits)
        differ = -jnp.sum(jax.lax.stop_gradient(taught) * learned, -1)
        base = task.loss(params, aux, graph, run, step, key)
        return base + run.hyper["teaching"] * reductions.mean(differ)

    return task._replace(
        loss=loss,
        init_aux=lambda params, run, graph: params,
        after_step=lambda params, aux, step: optax.incremental_update(params, aux, 0.1),
        predict=lambda params, aux, graph: module.apply(aux, graph),
    )


og.register_method(
    "gcn-teacher", og.Method("gcn", hyper={"teaching": 0.5}, customize=with_teacher)
)

# %%
# With and without, the same splits and seeds.
few = {"max_steps": 150}
names = ("gcn", "gcn-teacher")
found = {
    name: og.run("digits", name, splits=2, seeds=2, settings=few) for name in names
}
shown = {"accuracy": "Accuracy", "auroc": "AUROC", "fpr95": "FPR95 (lower is better)"}

figure, panels = plt.subplots(1, 3)
for axes, (metric, title) in zip(panels, shown.items(), strict=True):
    values = np.array([100 * found[name].metrics["ENT"][metric] for name in names])
    axes.plot([0, 1], values, "o-", color="#3b82c4", alpha=0.6)
    axes.plot([0, 1], values.mean(1), "_", color="#e0752d", ms=28, mew=3)
    axes.set_xticks([0, 1], ["gcn", "with teacher"])
    axes.set_xlim(-0.5, 1.5)
    axes.set_title(title, fontsize=10)
    print(f"{title}: {values.mean(1).round(1)}")
