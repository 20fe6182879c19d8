"""A record as experiments write them."""

from oodgat_jax import tables
from oodgat_jax.records import made_by


def record(dataset="cora", detector="ATT", auroc=(0.93, 0.95), **more):
    runs = len(auroc)
    scores = {name: list(auroc) for name in tables.COLUMNS}
    return {
        "dataset": dataset,
        "method": "oodgat",
        "detector": detector,
        "metrics": scores,
        "split_seeds": list(range(runs)),
        "model_seeds": [0] * runs,
        "hyperparameters": {"lr": 0.01},
        "steps_run": [100] * runs,
        "split_digest": "abc",
        **made_by(),
        "seconds": 1.5,
        **more,
    }
