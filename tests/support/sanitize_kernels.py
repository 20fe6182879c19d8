"""Builds the kernels with ASan and UBSan and runs their tests; needs GCC.

  python tests/support/sanitize_kernels.py

Further arguments go to pytest. Python is not built with the sanitizers, so that their
libraries are put first by LD_PRELOAD. A fault ends the process with a report.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

FLAGS = "-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"


def main(arguments: list[str]) -> int:
    """Runs the tests in one process and returns pytest's exit code."""
    tests = pathlib.Path(__file__).parent.parent
    file = tests / "kernels" / "test_kernels.py"
    with tempfile.TemporaryDirectory() as cache:
        variables = os.environ | {
            "ASAN_OPTIONS": "detect_leaks=0",
            "CXX": "g++",
            "LD_PRELOAD": " ".join(map(_runtime, ("libasan.so", "libubsan.so"))),
            "OODGAT_KERNELS_DIR": cache,
            "OODGAT_KERNEL_FLAGS": FLAGS,
            "PYTHONMALLOC": "malloc",
        }
        command = [sys.executable, "-m", "pytest", "-n0", str(file), *arguments]
        return subprocess.run(command, env=variables, check=False).returncode


def _runtime(name: str) -> str:
    """Returns where the compiler has a library."""
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
