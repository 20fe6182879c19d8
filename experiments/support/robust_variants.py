"""What `experiments.robust` compares: OODGAT+ and its parts, OODGAT, GAT."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oodgat_jax.methods import METHODS, recipes
from oodgat_jax.records import Record

PLUS = "oodgat-plus"
# Settings that switch a part of OODGAT+ off; without the last, validation chooses the
# step as it does for OODGAT.
OFF: Mapping[str, recipes.Recipe] = {
    "lead": {"led_steps": 0.0},
    "anchor": {"anchor": 0.0},
    "decay": {"feature_decay": 0.0},
    "averaging": {"averaging": 0.0},
    "last step": {"early_stop": True, "max_steps": 1000, "check_every": 10},
}
# The student learns when all else is over, so it is left out by itself alone.
STUDENT: Mapping[str, recipes.Recipe] = {"student": {"student_steps": 0.0}}
# Settings that people are likely to change, to show how much depends on them.
CHANGES: Mapping[str, recipes.Recipe] = {
    f"{name}={value}": {name: value}
    for name, values in {
        "weight_decay": (5e-5, 5e-4),
        "lr": (0.003, 0.03),
        "heads": (1, 8),
        "hidden": (16, 64),
    }.items()
    for value in values
}
# Scores that are recorded; those of GAT are chosen from by validation.
DETECTORS: Mapping[str, Sequence[str]] = {
    PLUS: METHODS[PLUS].detectors,
    "oodgat": ("ENT", "ATT", "FUSED", "ATT+prop"),
    "gat": ("ENT", "MSP", "energy", "GNNSafe", "GRASP", "kNN", "Mahalanobis"),
}


class Variant(NamedTuple):
    """A row of the tables."""

    title: str
    method: str
    off: tuple[str, ...] = ()  # parts of OODGAT+ that are off, or settings changed
    detector: str = ""  # "" for the one that is best on validation nodes

    @property
    def settings(self) -> recipes.Recipe:
        """Returns the settings that are not the recipe's."""
        known = {**OFF, **STUDENT, **CHANGES}
        return {k: v for part in self.off for k, v in known[part].items()}


SCORE, PROPAGATED = "FUSED+student", "FUSED+prop"  # parts are left out of the latter
MAIN = (
    Variant("OODGAT+", PLUS, (), SCORE),
    Variant("OODGAT", "oodgat", (), "ATT"),
    Variant("GAT (best detector)", "gat"),
)
SCORES = (
    Variant("OODGAT+ (FUSED+fit)", PLUS, (), "FUSED+fit"),
    Variant("OODGAT+ (FUSED+prop)", PLUS, (), PROPAGATED),
    Variant("OODGAT+ (FUSED alone)", PLUS, (), "FUSED"),
    Variant("OODGAT+ (ATT alone)", PLUS, (), "ATT"),
    Variant("OODGAT+ (ENT alone)", PLUS, (), "ENT"),
)
LEFT_OUT = tuple(
    Variant(f"OODGAT+ without {part}", PLUS, (part,), PROPAGATED) for part in OFF
)
UNTAUGHT = Variant("OODGAT+ without student", PLUS, tuple(STUDENT), SCORE)
ALONE = (
    Variant("OODGAT+ without any", PLUS, tuple(OFF), PROPAGATED),
    *(
        Variant(
            f"OODGAT+ with {part} alone",
            PLUS,
            tuple(name for name in OFF if name != part),
            PROPAGATED,
        )
        for part in OFF
    ),
)
CHANGED = tuple(
    Variant(f"OODGAT+ with {change}", PLUS, (change,), PROPAGATED) for change in CHANGES
)
VARIANTS = (*MAIN, UNTAUGHT, *SCORES, *LEFT_OUT, *ALONE, *CHANGED)


def find(records: Sequence[Record], variant: Variant, **where: object) -> list[Record]:
    """Returns the latest record of each detector of a variant."""
    found = {}
    for record in records:
        same = all(record.get(key) == value for key, value in where.items())
        if (
            same
            and record["method"] == variant.method
            and record["off"] == list(variant.off)
        ):
            found[record["detector"]] = record
    wanted = [variant.detector] if variant.detector else list(found)
    return [found[name] for name in wanted if name in found]


def values(records: Sequence[Record], metric: str) -> np.ndarray:
    """Returns a metric of every run [S], of the detector that validation prefers."""
    every = np.array([record["metrics"][metric] for record in records], float)
    if len(records) == 1:
        return every[0]
    judged = np.array([record["validation_auroc"] for record in records], float)
    return every[judged.argmax(0), np.arange(every.shape[1])]
