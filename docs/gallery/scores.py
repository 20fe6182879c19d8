"""Train once, then look at the scores: unknown nodes should be on the right."""

# %%
# One run on digits. Five of the ten classes are known; `is_ood` marks the others.
import matplotlib.pyplot as plt
import numpy as np

import oodgat_jax as og

result = og.run("digits", "oodgat", splits=1, seeds=1, detectors=("ENT", "ATT"))
print(result)

# %%
# Scores of the test nodes, one panel per detector. AUROC is the chance that a random
# unknown node scores higher than a random known one.
test = np.asarray(result.splits.test[0])
unknown = np.asarray(result.splits.is_ood[0])[test]
titles = {"ENT": "entropy of the prediction", "ATT": "OOD attention"}

figure, panels = plt.subplots(1, 2, sharey=True)
for axes, (name, title) in zip(panels, titles.items(), strict=True):
    scores = result.scores[name][0, test]
    bins = np.linspace(scores.min(), scores.max(), 40)
    axes.hist(scores[~unknown], bins, alpha=0.75, label="known")
    axes.hist(scores[unknown], bins, alpha=0.75, label="unknown")
    axes.set_title(f"{title}, AUROC {100 * result.metrics[name]['auroc'][0]:.1f}")
    axes.set_xlabel("score")
panels[0].set_ylabel("test nodes")
panels[1].legend()

# %%
# The nodes that it is most sure about, as pictures: above the lowest scores (known:
# 1, 3, 5, 8, 9), below the highest.
data = og.load("digits")
order = np.argsort(result.scores["ATT"][0])
figure, rows = plt.subplots(2, 12, figsize=(7.2, 1.5))
for row, chosen in zip(rows, (order[:12], order[-12:]), strict=True):
    for axes, node in zip(row, chosen, strict=True):
        axes.imshow(data.features[node].reshape(8, 8), cmap="gray_r")
        axes.axis("off")
