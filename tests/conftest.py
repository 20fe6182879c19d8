import os
from pathlib import Path

import pytest

from oodgat_jax import datasets


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real raw files; tests marked real_data ask for it."""
    folder = os.environ.get("OODGAT_DATA_DIR")
    if not folder:
        pytest.skip("OODGAT_DATA_DIR is not set")
    return Path(folder)


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Load a tiny data set from tmp_path under its real name."""

    def load_row(source):
        monkeypatch.setitem(datasets.DATASETS, source.name, source)
        return datasets.load(source.name, tmp_path)

    return load_row
