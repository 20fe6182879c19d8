"""A backbone with three layers of OOD attention, and what each layer thinks."""

# %%
# A backbone is a linen module. Fields of it are hyper-parameters, so `depth` can be set
# from Python and with `--set depth=4`.
import flax.linen as nn
import jax
import matplotlib.pyplot as plt
import numpy as np

import oodgat_jax as og
from oodgat_jax.models import OODGATLayer, attention_stack


class Deep(nn.Module):
    """OOD attention of any depth."""

    num_classes: int
    hidden: int = 16
    heads: int = 2
    depth: int = 3

    @nn.compact
    def __call__(self, graph, rates=None):
        """Returns the outputs of a stack of layers."""
        return attention_stack(self, OODGATLayer, graph, rates, self.depth)


og.register_backbone("deep", Deep)
og.register_method(
    "oodgat-deep",
    og.Method(
        backbone="deep",
        regularizers=("consistency", "entropy", "discrepancy"),
        validated_by="ATT",
        detectors=("ENT", "ATT"),
        hyper={"weight_decay": 0.0},
    ),
)
result = og.run("digits", "oodgat-deep", splits=1, seeds=1, settings={"max_steps": 150})
print(result)

# %%
# The scores of each layer, known and unknown test nodes.
best = jax.tree.map(lambda x: x[0], (result.states.best, result.states.best_aux))
attention = result.task.predict(*best, result.graph).attention
test = np.asarray(result.splits.test[0])
unknown = np.asarray(result.splits.is_ood[0])[test]

figure, panels = plt.subplots(1, 3, sharey=True)
for number, (axes, logits) in enumerate(zip(panels, attention, strict=True), start=1):
    scores = np.asarray(jax.nn.sigmoid(logits.mean(-1)))[test]
    axes.hist(scores[~unknown], 30, alpha=0.75, label="known")
    axes.hist(scores[unknown], 30, alpha=0.75, label="unknown")
    axes.set_title(f"layer {number}")
    axes.set_xlabel("w")
panels[0].set_ylabel("test nodes")
panels[-1].legend()
