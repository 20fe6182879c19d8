"""The first files of `support/fuzz_files.py`."""

import pytest
from support import fuzz_files

COUNTS = {"checkpoints": 20}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", fuzz_files.TARGETS)
def test_mutated_files_are_read_or_refused(name):
    count = COUNTS.get(name, 200)
    assert fuzz_files.fuzz(name, count, seed=1).total() == count
