"""The same run on one device and with its graph cut over four."""

# %%
# A CPU can pretend to be several devices, which is how sharding is tested. On GPUs and
# TPUs leave this out: `jax.devices()` are the real ones.
import jax
import matplotlib.pyplot as plt
import numpy as np

import oodgat_jax as og
from oodgat_jax.sharding import layout
from oodgat_jax.training import mesh

jax.config.update("jax_num_cpu_devices", 4)

# %%
# `runs:1,graph:4` puts one run on four devices. Losses are the same up to rounding:
# dropout follows the numbers of nodes and edges in the whole graph.
few = {"max_steps": 60}
devices = mesh.build(mesh.parse("runs:1,graph:4"))
whole = og.run("digits", "oodgat", splits=1, seeds=1, settings=few)
cut = og.run("digits", "oodgat", splits=1, seeds=1, settings=few, mesh=devices)
print("AUROC on one device:  ", whole.metrics["ATT"]["auroc"])
print("AUROC on four devices:", cut.metrics["ATT"]["auroc"])

# %%
# How digits is cut. Each dot is an edge; nodes are in the order that keeps neighbors
# together, and lines are the borders of the blocks. Only edges outside of the diagonal
# blocks cause communication.
data = og.load("digits")
order = layout.cuthill_mckee(data.senders, data.receivers, data.num_nodes)
rank = np.argsort(order)

figure, panels = plt.subplots(1, 2, figsize=(6.4, 3.2), sharex=True, sharey=True)
for axes, place, title in (
    (panels[0], np.arange(data.num_nodes), "as given"),
    (panels[1], rank, "reordered"),
):
    senders, receivers = place[data.senders], place[data.receivers]
    inside = senders * 4 // data.num_nodes == receivers * 4 // data.num_nodes
    axes.plot(senders[inside], receivers[inside], ",", color="#3b82c4")
    axes.plot(senders[~inside], receivers[~inside], ",", color="#e0752d")
    for border in np.linspace(0, data.num_nodes, 5)[1:-1]:
        axes.axvline(border, color="#8a8f98", lw=0.6)
        axes.axhline(border, color="#8a8f98", lw=0.6)
    axes.set_title(f"{title}: {np.mean(~inside):.0%} of edges across")
    axes.set_aspect("equal")
panels[0].set_ylabel("receiver")
figure.supxlabel("sender")
