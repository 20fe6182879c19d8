"""Turning scores into decisions when nobody has labeled an unknown node."""

# %%
# Two in five pictures of 0 to 5 are labeled, those of 6 to 9 never are.
import matplotlib.pyplot as plt
import numpy as np

import oodgat_jax as og

data = og.load("digits")
edges = np.stack([data.senders, data.receivers], axis=1)
known = data.labels <= 5
labels = np.where(known & (np.arange(data.num_nodes) % 5 < 2), data.labels, -1)

model = og.OODGATClassifier(members=2, settings={"max_steps": 250})
model.fit(data.features, edges, labels)
scores = model.ood_score()

# %%
# Two rules. `quantile` keeps a share of the known nodes that were held out; `mixture`
# puts the threshold between the two humps of all scores.
thresholds = {
    "quantile, keep 95 %": model.threshold_,
    "mixture": model.threshold_for(model.answer(), "mixture"),
}

for name, threshold in thresholds.items():
    kept, found = (
        (scores[known] <= threshold).mean(),
        (scores[~known] > threshold).mean(),
    )
    print(f"{name}: threshold {threshold:.2f}")
    print(f"  {kept:.0%} of known nodes kept, {found:.0%} of unknown ones found")

# %%
# The classifier sees the gray outline; the colors are known to us alone.
figure, axes = plt.subplots(figsize=(6.4, 3.2))
bins = np.linspace(scores.min(), scores.max(), 60)
axes.hist(scores[known], bins, alpha=0.7, label="known (0 to 5)")
axes.hist(scores[~known], bins, alpha=0.7, label="unknown (6 to 9)")
axes.hist(scores, bins, histtype="step", color="#8a8f98", label="all")
for (name, threshold), style in zip(thresholds.items(), ("-", "--"), strict=True):
    axes.axvline(threshold, color="#c94f4f", ls=style, label=name)
axes.set_xlabel("score")
axes.set_ylabel("nodes")
axes.legend(fontsize=8)
