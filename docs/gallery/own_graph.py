"""Features, edges and a few labels in; a class or "unknown" for every node out."""

# %%
# Three communities in the plane. Some nodes of the first two are labeled; nobody has
# labeled the third.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import kneighbors_graph

import oodgat_jax as og

random = np.random.default_rng(0)
truth = np.repeat([0, 1, 2], 150)
centers = np.array([[0.0, 0.0], [3.2, 0.4], [1.5, 2.8]])
places = centers[truth] + random.normal(scale=0.75, size=(450, 2))
features = np.hstack([places, random.normal(size=(450, 6))]).astype(np.float32)
edges = kneighbors_graph(places, 6)  # also pairs [E, 2], networkx, PyG, DGL
labeled = (truth < 2) & (random.random(450) < 0.35)
labels = np.where(labeled, truth, -1)

# %%
# Four networks vote. The threshold keeps 95 % of known nodes that were held out.
model = og.OODGATClassifier(keep=0.95, settings={"max_steps": 200})
model.fit(features, edges, labels)
predicted = model.predict()
print(f"found {np.mean(predicted[truth == 2] == -1):.0%} of the unknown nodes,")
print(f"lost {np.mean(predicted[truth < 2] == -1):.0%} of the known ones")

# %%
# What went in, and what came out: color is the class, orange is unknown.
figure, panels = plt.subplots(1, 2, sharex=True, sharey=True)
pairs = np.transpose(edges.nonzero())
shown = {0: ("#3b82c4", "class 0"), 1: ("#3a9d5d", "class 1")}
for axes, values, other, title in (
    (panels[0], labels, ("#9aa4af", "unlabeled"), "given"),
    (panels[1], predicted, ("#e0752d", "unknown"), "predicted"),
):
    axes.plot(*places[pairs].transpose(2, 1, 0), color="#9aa4af", lw=0.3, zorder=0)
    for value, (color, name) in (shown | {-1: other}).items():
        axes.scatter(*places[values == value].T, s=12, color=color, label=name)
    axes.set_title(title)
    axes.axis("off")
    axes.legend(loc="upper right", fontsize=8)
