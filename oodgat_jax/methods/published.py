"""Settings that papers publish for methods of the field, per data set and shift.

They are data: `published("gnnsafe++", "cora", "label")` gives what differs there from
the method's own settings, as `recipes.override` takes it. From the scripts `run.sh` of
GNNSafe's and NODESAFE's repositories; a pair that they do not have gets the settings of
the data set that comes nearest, as the tables below show.
"""

from collections.abc import Mapping

from oodgat_jax.registry import check_name

SHIFTS = ("structure", "feature", "label")

Margins = Mapping[tuple[str, str], tuple[float, float, float]]

# (m_in, m_out, weight) of the energy margin, by (data set, shift).
_PROPAGATED: Margins = {
    ("cora", "structure"): (-5.0, -1.0, 0.01),
    ("cora", "feature"): (-5.0, -1.0, 0.01),
    ("cora", "label"): (-5.0, -4.0, 1.0),
    ("amazon-photo", "structure"): (-9.0, -1.0, 0.1),
    ("amazon-photo", "feature"): (-9.0, -1.0, 1.0),
    ("amazon-photo", "label"): (-9.0, -4.0, 1.0),
    ("coauthor-cs", "structure"): (-5.0, -1.0, 0.1),
    ("coauthor-cs", "feature"): (-7.0, -1.0, 0.1),
    ("coauthor-cs", "label"): (-9.0, -2.0, 0.01),
    ("twitch", "domain"): (-5.0, -1.0, 0.1),
    ("ogbn-arxiv", "year"): (-9.0, -2.0, 0.01),
}
_PLAIN: Margins = {
    **_PROPAGATED,
    ("amazon-photo", "structure"): (-9.0, -1.0, 0.01),
    ("amazon-photo", "feature"): (-5.0, -1.0, 1.0),
    ("twitch", "domain"): (-7.0, -2.0, 0.1),
    ("ogbn-arxiv", "year"): (-9.0, -4.0, 0.01),
}
# NODESAFE's lambda_2, without and with exposure.
_BOUNDED: Mapping[tuple[str, str], tuple[float, float]] = {
    ("cora", "structure"): (12.0, 12.0),
    ("cora", "feature"): (12.0, 10.0),
    ("citeseer", "structure"): (5.0, 5.0),
    ("citeseer", "feature"): (5.0, 1.0),
    ("pubmed", "structure"): (0.8, 2.0),
    ("pubmed", "feature"): (1.0, 1.0),
}
# Whose settings a data set takes for which none are published.
NEAREST = {
    "citeseer": "cora",
    "pubmed": "cora",
    "amazon-computers": "amazon-photo",
    "coauthor-physics": "coauthor-cs",
}
METHODS_WITH_SETTINGS = ("energy-ft", "gnnsafe++", "nodesafe", "nodesafe++")


def published(method: str, dataset: str, shift: str) -> dict[str, float]:
    """Returns the settings published for a method, data set and shift.

    Args:
      method: of METHODS_WITH_SETTINGS; any other has none beyond its own.
      dataset: its name; see NEAREST for those without published settings.
      shift: of SHIFTS, or "domain" of Twitch and "year" of ogbn-arxiv.
    """
    if method not in METHODS_WITH_SETTINGS:
        return {}
    found: dict[str, float] = {}
    if method != "nodesafe":
        found |= _margin(
            _PLAIN if method == "energy-ft" else _PROPAGATED, dataset, shift
        )
    if method.startswith("nodesafe"):
        found["bounded_energy"] = _bounded(dataset, shift)[method == "nodesafe++"]
    return found


def is_published(method: str, dataset: str, shift: str) -> bool:
    """Returns whether a paper gives these settings for this very data set."""
    tables = {
        "energy-ft": (_PLAIN,),
        "gnnsafe++": (_PROPAGATED,),
        "nodesafe": (_BOUNDED,),
        "nodesafe++": (_PROPAGATED, _BOUNDED),
    }
    return all((dataset, shift) in table for table in tables.get(method, ()))


def _margin(margins: Margins, dataset: str, shift: str) -> dict[str, float]:
    name = dataset if (dataset, shift) in margins else NEAREST.get(dataset, dataset)
    check_name("data set with published margins", name, sorted({k for k, _ in margins}))
    shifts = [known for key, known in margins if key == name]
    check_name(f"shift of {name}", shift, shifts)
    m_in, m_out, weight = margins[name, shift]
    return {"m_in": m_in, "m_out": m_out, "energy_margin": weight}


def _bounded(dataset: str, shift: str) -> tuple[float, float]:
    """Returns lambda_2 without and with exposure; where the paper has none, that of the
    structure shift, or 1."""
    other = _BOUNDED.get((dataset, "structure"), (1.0, 1.0))
    return _BOUNDED.get((dataset, shift), other)
