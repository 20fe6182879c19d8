import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """One folder of compiled programs for all calls of binaries, in all processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "binaries"
    folder.mkdir(exist_ok=True)
    return folder
