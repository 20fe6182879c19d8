"""Records that cross module borders, and the legend of the shapes.

N nodes, E directed edges, F features, C known (ID) classes, H attention heads,
D width per head, S runs. A score is higher for a node that looks more OOD.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

Array = jax.Array
Features = Any  # np.ndarray or scipy.sparse.csr_array, [N, F]
AnyArray = jax.Array | np.ndarray  # of the host or of a device


class InputError(ValueError):
    """A mistake in what the user gave; its text is one sentence meant for them."""


class Dataset(NamedTuple):
    """A graph with labels, on the host, ready to be split.

    Edges carry no self-loops and no duplicates; they are symmetric unless the
    source is directed.
    """

    name: str
    features: Features  # [N, F] float32, already scaled
    senders: np.ndarray  # [E] int32
    receivers: np.ndarray  # [E] int32
    labels: np.ndarray  # [N] int32, -1 where the source gives none
    id_classes: tuple[int, ...]  # ascending; every other class is OOD
    test_size: int  # ID test nodes of a split, and as many OOD ones
    num_public_train: int = 0  # leading nodes of a published train split, if any
    exposure: np.ndarray | None = None  # [N] bool: known to be OOD, for training
    components: tuple[int, ...] = ()  # nodes of each of several joined graphs

    @property
    def num_nodes(self) -> int:
        """Returns N."""
        return self.features.shape[0]

    @property
    def num_classes(self) -> int:
        """Returns C, the number of known classes."""
        return len(self.id_classes)


class Part(NamedTuple):
    """A contiguous slice of the node order: n nodes, their features and all incoming
    edges.

    Edges are sorted by receiver and have one self-loop per node. Dropout masks are
    derived from the global indices of edges and stored features, so that results do
    not depend on the partition. None: consecutive across parts.
    """

    features: Features  # [n, F] float32
    senders: np.ndarray  # [e] int64, ranks
    receivers: np.ndarray  # [e] int64, ranks
    edges: np.ndarray | None = None  # [e] global indices
    entries: np.ndarray | None = None  # [z] global indices of stored features


ReadPart = Callable[[int, int], Part]  # first rank, rank after the last


class StreamedGraph(NamedTuple):
    """A graph that is read part by part, in the order of its nodes' numbers.

    It has what `splits.draw` needs of a Dataset. Labels are one number per node, which
    every process can hold; features and edges are streamed.
    """

    name: str
    num_nodes: int  # N
    labels: np.ndarray  # [N] int32, -1 where the source gives none
    id_classes: tuple[int, ...]  # ascending; every other class is OOD
    test_size: int
    read: ReadPart
    exposure: np.ndarray | None = None  # [N] bool: known to be OOD, for training

    @property
    def num_classes(self) -> int:
        """Returns C, the number of known classes."""
        return len(self.id_classes)


class _SplitFields(NamedTuple):
    labels: AnyArray  # [N] int32: 0..C-1, C for OOD, -1 without a label
    is_ood: AnyArray  # [N] bool
    train: AnyArray  # [N] bool, ID nodes only
    val: AnyArray  # [N] bool, ID and OOD nodes
    test: AnyArray  # [N] bool, ID and OOD nodes
    exposure: AnyArray  # [N] bool, OOD examples that training may use


class Split(_SplitFields):
    """Who is labeled, validated on and tested on. Splits stack over seeds.

    Nodes of `exposure` are allowed as examples of OOD in training; they are in none of
    the other masks. Without it nobody is.
    """

    __slots__ = ()

    def __new__(
        cls,
        labels: AnyArray,
        is_ood: AnyArray,
        train: AnyArray,
        val: AnyArray,
        test: AnyArray,
        exposure: AnyArray | None = None,
    ) -> "Split":
        """Returns the split; nobody is exposed by default."""
        if exposure is None:
            library = np if isinstance(train, np.ndarray) else jnp
            exposure = library.zeros_like(train)
        return super().__new__(cls, labels, is_ood, train, val, test, exposure)


class Outputs(NamedTuple):
    """What every backbone returns for a graph."""

    logits: Array  # [N, C]
    hidden: Array  # [N, D], the representation before the last layer
    attention: tuple[Array, ...]  # OOD logits per layer, [N, H] each; () if none
    passes: tuple[Array, ...] = ()  # mean p [N, C], mean H(p) [N] of Monte Carlo passes
    reference: tuple[Array, ...] = ()  # kept of a fit: see `detectors.fitted_fusion`
    # The network's own logits [N, C], those of its student [N, C + 1], quantiles of
    # their scores [2, Q], the student's share; `logits` are of both then.
    student: tuple[Array, ...] = ()


class Rates(NamedTuple):
    """Dropout rates of a training step; scalars, which may be traced."""

    input: Array | float  # on the features
    hidden: Array | float  # on the hidden layer
    attention: Array | float  # on normalized attention weights


Hyper = Mapping[str, Any]  # float hyper-parameters by name, as array leaves
Predict = Callable[[jraph.GraphsTuple], Outputs]
# (outputs, split, hyper); by keyword the graph and the step, where it needs them.
Regularizer = Callable[..., Array]
Detector = Callable[[Predict, jraph.GraphsTuple, Split], Array]
