import pytest
from support import report_cases

from oodgat_jax import report


@pytest.fixture(scope="session")
def findings():
    return report_cases.made()


@pytest.fixture(scope="session")
def built(findings):
    return report.build(findings)
