"""Times training steps of plain PyTorch Geometric models, for `experiments.benchmark`.

  python experiments/support/pyg_peer.py --data=FILE --method=oodgat --threads=2

OODGAT, GAT and GCN as one would write them with PyG: dense features, as its data sets
give them, `MessagePassing`, `GATConv`, `GCNConv`, Adam, and a validation every ten
steps. What need not be done at every step is done before: edges come with their
self-loops, and GCN's weights are cached. Runs in any Python that has torch,
torch_geometric and scikit-learn; nothing of this project is imported. FILE comes from
`peers.write`. Prints `about: ...`, `ms_per_step: X` and `cpu_ms_per_step: X`.
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, MessagePassing
from torch_geometric.utils import softmax

CHECK_EVERY = 10
WARM_UP = 2


class OODGATConv(MessagePassing):
    """Attends by e_ij = 1 - |w_i - w_j|, w = sigmoid of a learned score of a node."""

    def __init__(self, inputs: int, width: int, heads: int, rate: float, concat: bool):
        super().__init__(aggr="add", node_dim=0)
        self.shape, self.rate, self.concat = (heads, width), rate, concat
        self.linear = nn.Linear(inputs, heads * width, bias=False)
        self.query = nn.Parameter(torch.empty(1, heads, width))
        self.bias = nn.Parameter(torch.zeros(heads * width if concat else width))
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.xavier_uniform_(self.query)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Returns new features and the OOD logits [N, H]."""
        h = self.linear(x).view(-1, *self.shape)
        logits = (h * self.query).sum(-1)
        out = self.propagate(edges, h=h, w=logits.sigmoid())
        out = out.flatten(1) if self.concat else out.mean(1)
        return out + self.bias, logits

    def message(self, h_j: Tensor, w_i: Tensor, w_j: Tensor, index: Tensor) -> Tensor:
        """Weighs the features of an edge's sender."""
        alpha = softmax(1 - (w_i - w_j).abs(), index)
        alpha = F.dropout(alpha, self.rate, self.training)
        return h_j * alpha.unsqueeze(-1)


class OODGAT(nn.Module):
    """Two layers of OOD attention."""

    def __init__(self, inputs: int, classes: int, recipe: dict):
        super().__init__()
        hidden, heads = recipe["hidden"], recipe["heads"]
        rate = recipe["attention_dropout"]
        self.first = OODGATConv(inputs, hidden, heads, rate, True)
        self.second = OODGATConv(heads * hidden, classes, heads, rate, False)
        self.rates = recipe["input_dropout"], recipe["dropout"]

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Returns class logits and the OOD logits of both layers."""
        x = F.dropout(x, self.rates[0], self.training)
        x, first = self.first(x, edges)
        x = F.dropout(F.elu(x), self.rates[1], self.training)
        x, second = self.second(x, edges)
        return x, [first, second]


class GAT(nn.Module):
    """Two `GATConv`."""

    def __init__(self, inputs: int, classes: int, recipe: dict):
        super().__init__()
        hidden, heads = recipe["hidden"], recipe["heads"]
        same = {
            "heads": heads,
            "dropout": recipe["attention_dropout"],
            "add_self_loops": False,
        }
        self.first = GATConv(inputs, hidden, **same)
        self.second = GATConv(heads * hidden, classes, concat=False, **same)
        self.rates = recipe["input_dropout"], recipe["dropout"]

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Returns class logits."""
        x = F.dropout(x, self.rates[0], self.training)
        x = F.dropout(F.elu(self.first(x, edges)), self.rates[1], self.training)
        return self.second(x, edges), []


class GCN(nn.Module):
    """Two `GCNConv`."""

    def __init__(self, inputs: int, classes: int, recipe: dict):
        super().__init__()
        same = {"cached": True, "add_self_loops": False}
        self.first = GCNConv(inputs, recipe["hidden"], **same)
        self.second = GCNConv(recipe["hidden"], classes, **same)
        self.rate = recipe["dropout"]

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Returns class logits."""
        x = F.dropout(F.relu(self.first(x, edges)), self.rate, self.training)
        return self.second(x, edges), []


MODELS: dict[str, Callable[[int, int, dict], nn.Module]] = {
    "gat": GAT,
    "gcn": GCN,
    "oodgat": OODGAT,
}


class Trainer:
    """A model on a graph, with its optimizer."""

    def __init__(self, data: dict[str, Tensor], recipe: dict, method: str):
        self.data, self.recipe = data, recipe
        classes = int(data["labels"][data["train"]].max()) + 1
        model = MODELS[method](data["x"].shape[1], classes, recipe)
        self.model = model.to(data["x"].device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=recipe["lr"],
            weight_decay=recipe["weight_decay"],
        )

    def step(self, number: int) -> None:
        """Takes one training step."""
        self.model.train()
        self.optimizer.zero_grad()
        logits, scores = self.model(self.data["x"], self.data["edges"])
        train = self.data["train"]
        loss = F.cross_entropy(logits[train], self.data["labels"][train])
        if scores:
            loss = loss + 0.9 ** (0.01 * number) * self._regularizers(logits, scores)
        loss.backward()
        self.optimizer.step()

    def validate(self) -> float:
        """Returns accuracy plus AUROC on the validation nodes."""
        self.model.eval()
        val, is_ood = self.data["val"], self.data["is_ood"]
        with torch.no_grad():
            logits, scores = self.model(self.data["x"], self.data["edges"])
        known = val & ~is_ood
        right = logits[known].argmax(1) == self.data["labels"][known]
        score = _ood_score(scores) if scores else _entropy(logits)
        auroc = roc_auc_score(is_ood[val].cpu(), score[val].cpu())
        return float(right.float().mean()) + float(auroc)

    def _regularizers(self, logits: Tensor, scores: list[Tensor]) -> Tensor:
        entropy = _entropy(logits)
        target = ((entropy - entropy.mean()) / entropy.std()).sigmoid()
        means = [s.mean(1) for s in scores]
        near = [F.cosine_similarity(m.sigmoid(), target, dim=0) for m in means]
        loss = -self.recipe["consistency"] * sum(near) / len(near)
        loss = loss - self.recipe["discrepancy"] * F.cosine_similarity(*means, dim=0)
        mask = _ood_score(scores).detach() >= self.recipe["threshold"]
        if mask.any():
            uniform = -F.log_softmax(logits[mask], 1).mean()
            loss = loss + self.recipe["entropy"] * uniform
        return loss


def _entropy(logits: Tensor) -> Tensor:
    return -(F.softmax(logits, 1) * F.log_softmax(logits, 1)).sum(1)


def _ood_score(scores: list[Tensor]) -> Tensor:
    return torch.cat(scores, 1).mean(1).sigmoid()


def load(path: str, device: str) -> tuple[dict[str, Tensor], dict]:
    """Returns the graph, its features dense, and the recipe."""
    stored = np.load(path)
    x = torch.zeros(tuple(stored["shape"]))
    x[stored["rows"], stored["columns"]] = torch.from_numpy(stored["values"])
    names = ("edges", "labels", "train", "val", "is_ood")
    data = {name: torch.from_numpy(stored[name]) for name in names}
    data["edges"], data["labels"] = data["edges"].long(), data["labels"].long()
    placed = {name: value.to(device) for name, value in (data | {"x": x}).items()}
    return placed, json.loads(str(stored["recipe"]))


def ms_per_step(trainer: Trainer, seconds: float) -> tuple[float, float]:
    """Times blocks of ten steps and a validation for about so many seconds.

    Returns wall time and CPU time of a step.
    """
    for number in range(WARM_UP):
        trainer.step(number)
    trainer.validate()
    _synchronize()
    began, busy, steps = time.perf_counter(), time.process_time(), 0
    while not steps or time.perf_counter() - began < seconds:
        for _ in range(CHECK_EVERY):
            trainer.step(WARM_UP + steps)
            steps += 1
        trainer.validate()
        _synchronize()
    wall = 1e3 * (time.perf_counter() - began) / steps
    return wall, 1e3 * (time.process_time() - busy) / steps


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    """Reads the flags and prints the time of a step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--method", choices=sorted(MODELS), required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data, recipe = load(args.data, device)
    ms, cpu_ms = ms_per_step(Trainer(data, recipe, args.method), args.seconds)
    packages = f"torch {torch.__version__}, PyG {torch_geometric.__version__}"
    print(f"about: {packages}, {device}, {args.threads} threads")
    print(f"cpu_ms_per_step: {cpu_ms}")
    print(f"ms_per_step: {ms}")


if __name__ == "__main__":
    main()
