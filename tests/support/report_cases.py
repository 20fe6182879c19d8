"""Made findings: three known and two unknown communities, names that are markup."""

import numpy as np

from oodgat_jax.estimator import bounds
from oodgat_jax.report import Findings
from oodgat_jax.report.findings import Bounds

EVIL = "</script><script>window.evil = 1</script><img src=x onerror='window.evil=1'>"
SIZE = 600


def made(size=SIZE, attention=True, calibrated=True, degree=1, seed=0):
    """Findings without a model: five blobs, of which the last two are unknown."""
    random = np.random.default_rng(seed)
    blob = np.arange(size) % 5
    centers = 3 * np.eye(5, 8)
    space = (centers[blob] + random.normal(scale=0.4, size=(size, 8))).astype("f4")
    score = (random.beta(2, 5, size) / 2 + 0.45 * (blob > 2)).astype("f4")
    codes = np.where((blob < 3) & (random.random(size) < 0.5), blob, -1)
    held_out = (codes >= 0) & (random.random(size) < 0.4)
    senders = np.arange(size)
    receivers = senders
    for step in range(1, degree + 1):
        senders = np.concatenate([senders, np.arange(size) * 7 * step % size])
        receivers = np.concatenate([receivers, (np.arange(size) + 5 * step) % size])
    order = np.lexsort((senders, receivers))
    senders, receivers = senders[order], receivers[order]
    weights = random.random(len(senders))
    weights /= np.bincount(receivers, weights, size)[receivers]
    probabilities = random.dirichlet(np.ones(3), size).astype("f4")
    calibration = np.sort(score[held_out])
    threshold = float(np.quantile(calibration, 0.95, method="higher"))
    return Findings(
        ids=[f"node-{i}" for i in range(size - 1)] + [EVIL],
        classes=["ant", "bee", EVIL],
        probabilities=probabilities,
        score=score,
        spread=random.random(size).astype("f4") / 10,
        codes=codes,
        held_out=held_out,
        threshold=threshold,
        space=space,
        features=space,
        senders=senders,
        receivers=receivers,
        attention=weights if attention else None,
        label_names=["ant", "bee", EVIL],
        feature_names=[EVIL, *(f"length {k}" for k in range(7))],
        bounds=Bounds(
            calibration,
            bounds.lost_count(calibration, threshold, 0.95),
            bounds.shares(len(calibration)),
            bounds.CONFIDENCE,
        )
        if calibrated
        else None,
        facts=[("method", EVIL)],
    )
