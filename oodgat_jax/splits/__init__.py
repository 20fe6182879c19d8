"""(Dataset, seed) -> Split, in numpy on the host: one file per published protocol.

`draw` is the paper's and draws exactly the nodes the authors' code draws for the same
seed, because people compare against it. `draw_citation` is the protocol of GKDE on the
public Planetoid splits. None touches numpy's global random state.
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
from oodgat_jax.splits.paper import draw

__all__ = [
    "CITATION_ID_CLASSES",
    "CITATION_TEST_NODES",
    "CITATION_VAL_NODES",
    "check_exposure",
    "digest",
    "draw",
    "draw_citation",
    "draw_development",
    "evaluation_draws",
    "expose",
    "random_partition",
    "random_partitions",
    "stack",
]
