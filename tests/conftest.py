import atexit
import functools
import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest

# One folder of compiled programs for the tests of this session: both of its processes
# and those that they start. JAX reads these variables when it is imported.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="oodgat-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

# Two processes of tests share the cores; threads of scikit-learn would wait in vain.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Looking for garbage is a fifth of the time of importing what the tests need, and finds
# none. The library is imported by those that use it: the process that hands out the
# tests does not.
gc.disable()

# Files of few and long tests begin, so that no process is left alone with one.
LONG = (
    "test_sharding.py",
    "test_testing.py",
    "test_site.py",
    "test_interruptions.py",
    "test_kernels.py",
    "test_signals.py",
    "test_predict.py",
    "test_cluster.py",
    "test_estimator.py",
    "test_extending.py",
    "test_backbones.py",
    "test_detectors.py",
    "test_detect.py",
    "test_plus.py",
    "test_robust.py",
    "test_train.py",
    "test_report.py",
    "test_page.py",
)
# Files whose numbers are those of the code as users have it compiled. Elsewhere
# compiling is most of the time, and optimizing most of that.
OPTIMIZED = (
    "test_reference.py",
    "test_sparse.py",
)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Prepares a process that runs tests; what hands them out has kernels compiled."""
    hands_out = session.config.getoption("numprocesses", None)
    if hasattr(session.config, "workerinput"):
        # After all that others register: freeing what a thousand tests made is slow.
        atexit.register(os._exit, 0)
        prepare()
    elif not hands_out:
        prepare()
    else:
        from experiments.support import kernels_ahead

        kernels_ahead.begin([])


def prepare() -> None:
    import jax
    from support import leaving, quick_digits, quick_unique

    from oodgat_jax.datasets import download

    # What these processes compile is read by no other; those that they start keep it.
    jax.config.update("jax_enable_compilation_cache", False)
    leaving.use()
    quick_unique.use()
    quick_digits.use()
    # Binaries that tests call with a cache of their own share the compiled kernels.
    os.environ.setdefault("OODGAT_KERNELS_DIR", str(download.cache_dir() / "kernels"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first; the order inside of a file stays."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    """Spares what is imported by now, which is no garbage, from every collection."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Spares what is left too, for which pytest would look five times."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def compiling(request: pytest.FixtureRequest) -> None:
    """Compiles without optimizing, but for the files named above."""
    from support.compiling import use

    use(quick=request.path.name not in OPTIMIZED)


@pytest.fixture(scope="module", autouse=True)
def students(request: pytest.FixtureRequest) -> None:
    """Trains OODGAT+ without its student, but for the files that are about it."""
    from support import lone_teacher

    lone_teacher.use(student=request.path.name in lone_teacher.WITH_STUDENT)


@pytest.fixture(scope="session")
def native():
    """The compiled kernels; tests of them are skipped where there are none."""
    from oodgat_jax import kernels

    if not kernels.status().available:
        pytest.skip(kernels.status().reason)
    return kernels.status()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real raw files; tests marked real_data ask for it."""
    folder = os.environ.get("OODGAT_DATA_DIR")
    if not folder:
        pytest.skip("OODGAT_DATA_DIR is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def real(data_dir):
    """From a name to a real data set, loaded once per process."""
    from oodgat_jax import datasets

    return functools.cache(lambda name: datasets.load(name, data_dir))


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Load a tiny data set from tmp_path under its real name."""
    from oodgat_jax import datasets

    def load_row(source):
        monkeypatch.setitem(datasets.DATASETS, source.name, source)
        return datasets.load(source.name, tmp_path)

    return load_row
