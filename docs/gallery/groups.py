"""Groups of unknown nodes, and which nodes to label next."""

# %%
# Four communities in the plane; nobody has labeled the last two.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import kneighbors_graph

import oodgat_jax as og
from oodgat_jax import report

random = np.random.default_rng(0)
truth = np.repeat([0, 1, 2, 3], 120)
centers = np.array([[0.0, 0.0], [3.4, 0.2], [0.4, 3.2], [3.6, 3.4]])
places = centers[truth] + random.normal(scale=0.6, size=(480, 2))
features = np.hstack([places, random.normal(size=(480, 4))]).astype(np.float32)
edges = kneighbors_graph(places, 6)
labels = np.where((truth < 2) & (random.random(480) < 0.4), truth, -1)

model = og.OODGATClassifier(members=2, settings={"max_steps": 200})
model.fit(features, edges, labels, names=["east", "north", "a", "b", "c", "d"])

# %%
# Nodes that are called unknown fall into groups: candidates for new classes.
# `model.report("report.html")` shows them on a page, with a map and a threshold.
findings = model.findings()
found = report.find_groups(findings)
for number, group in enumerate(found.groups, start=1):
    print(
        f"group {number}: {group.size} nodes, nearest to class {group.nearest_class},"
    )
    print("  ", ", ".join(f"{c.name} {c.difference:+.1f}" for c in group.contrasts[:2]))

# %%
# What to label next: `model.review()` gives the same as rows of a table.
for row in model.review(5):
    print(f"node {row.id}: {row.reason}")

# %%
# Groups in color, suggested nodes with a ring.
figure, axes = plt.subplots()
axes.scatter(*places[found.of_node < 0].T, s=12, color="#9aa4af", label="in no group")
for number in range(len(found.groups)):
    axes.scatter(*places[found.of_node == number].T, s=12, label=f"group {number + 1}")
next_ = [int(row.id) for row in model.review(10)]
axes.scatter(
    *places[next_].T, s=60, facecolors="none", edgecolors="black", label="next"
)
axes.axis("off")
axes.legend(loc="center", fontsize=8)
