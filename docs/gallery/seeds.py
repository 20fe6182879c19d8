"""Eight runs in one call: how much of a difference is method, and how much is luck?"""

# %%
# Two splits with four seeds each, for two methods. On a CPU each core trains one run at
# a time, on a GPU they are batched. A run gives the same numbers alone as among others.
import matplotlib.pyplot as plt

import oodgat_jax as og

og.use_cores()
few = {"max_steps": 150}
runs = {
    "GCN": (og.run("digits", "gcn", splits=2, seeds=4, settings=few), "ENT"),
    "OODGAT": (og.run("digits", "oodgat", splits=2, seeds=4, settings=few), "ATT"),
}
auroc = {name: 100 * r.metrics[d]["auroc"] for name, (r, d) in runs.items()}
difference = auroc["OODGAT"] - auroc["GCN"]
print(f"OODGAT less GCN: {difference.mean():.1f} ± {difference.std():.1f} points")

# %%
# Left every run; lines join the same split and seed. Right the training loss of each
# run; a line ends where early stopping ends its run.
figure, (left, right) = plt.subplots(1, 2)
left.plot([0, 1], list(auroc.values()), "o-", color="#3b82c4", alpha=0.6)
left.set_xticks([0, 1], list(auroc))
left.set_xlim(-0.4, 1.4)
left.set_ylabel("AUROC")

for (name, (result, _)), color in zip(
    runs.items(), ("#3b82c4", "#e0752d"), strict=True
):
    right.plot(result.states.losses.T, color=color, alpha=0.5, lw=1)
    right.plot([], color=color, label=name)
right.set_xlabel("check, every tenth step")
right.set_ylabel("loss")
right.legend()
