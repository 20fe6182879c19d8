"""Lets the student of OODGAT+ learn for twenty steps, where its quality is no matter.

Its two hundred steps are most of a short training, and compiled without optimizing they
are slow. `tests/methods/test_student.py` says itself for how long it learns.
"""

from oodgat_jax.methods import METHODS

NAME, STEPS = "oodgat-plus", 20.0


def use():
    """Changes the default of the method, in this process."""
    method = METHODS[NAME]
    METHODS[NAME] = method._replace(hyper={**method.hyper, "student_steps": STEPS})
