"""OODGAT+ without its student, for tests that are about something else.

What the student does is half of what is compiled for the method, which is the
classifier's default. The files of WITH_STUDENT have it, and let it learn for twenty
steps unless they say for how many.
"""

from oodgat_jax.methods import METHODS
from oodgat_jax.types import Outputs

NAME, STEPS = "oodgat-plus", 20.0
FULL = METHODS[NAME]  # as users have it
SCORE = "FUSED+student"
WITH_STUDENT = (
    "test_gkde_study.py",
    "test_plus.py",
    "test_robust.py",
    "test_taught_models.py",
)


def use(student: bool = False) -> None:
    """Trains OODGAT+ with or without its student from now on, in this process."""
    METHODS[NAME] = _WITH if student else _WITHOUT


def _alone(task, module):
    """What OODGAT+ adds to OODGAT, without the student."""
    found = FULL.customize(task, module)

    def init_aux(*given):
        return found.init_aux(*given)._replace(student=())

    def predict(params, aux, graph) -> Outputs:
        outputs = task.predict(aux.average, (), graph)
        return outputs._replace(reference=aux.fit)

    return found._replace(init_aux=init_aux, predict=predict, finish=None)


_WITH = FULL._replace(hyper={**FULL.hyper, "student_steps": STEPS})
_WITHOUT = FULL._replace(
    customize=_alone,
    validated_by="FUSED+fit",
    detectors=tuple(name for name in FULL.detectors if name != SCORE),
    keeps=tuple(name for name in FULL.keeps if name != SCORE),
)
