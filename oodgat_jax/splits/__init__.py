"""(Dataset, seed) -> Split, in numpy on the host: one file per published protocol.

`draw` is the paper's and draws exactly the nodes the authors' code draws for the same
seed, because people compare against it. `draw_citation` is the protocol of GKDE on the
public Planetoid splits. `under_gnnsafe`, `under_grasp` and `under_gpn` return a Shift:
what is learned from, what is scored, and how splits of both are drawn. None touches
numpy's global random state.
"""

from oodgat_jax.splits.assembly import check_exposure, digest, expose, stack
from oodgat_jax.splits.citation import (
    CITATION_ID_CLASSES,
    CITATION_TEST_NODES,
    CITATION_VAL_NODES,
    draw_citation,
    evaluation_draws,
)
from oodgat_jax.splits.development import (
    draw_development,
    random_partition,
    random_partitions,
)
from oodgat_jax.splits.domains import under_arxiv, under_twitch
from oodgat_jax.splits.gnnsafe import (
    SHIFTS,
    draw_gnnsafe,
    feature_shift,
    label_shift,
    structure_shift,
    under_gnnsafe,
)
from oodgat_jax.splits.gpn import draw_gpn, under_gpn
from oodgat_jax.splits.grasp import draw_grasp, under_grasp
from oodgat_jax.splits.paper import draw
from oodgat_jax.splits.shift import Shift

__all__ = [
    "CITATION_ID_CLASSES",
    "CITATION_TEST_NODES",
    "CITATION_VAL_NODES",
    "SHIFTS",
    "Shift",
    "check_exposure",
    "digest",
    "draw",
    "draw_citation",
    "draw_development",
    "draw_gnnsafe",
    "draw_gpn",
    "draw_grasp",
    "evaluation_draws",
    "expose",
    "feature_shift",
    "label_shift",
    "random_partition",
    "random_partitions",
    "stack",
    "structure_shift",
    "under_arxiv",
    "under_gnnsafe",
    "under_gpn",
    "under_grasp",
    "under_twitch",
]
