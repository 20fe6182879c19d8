"""What the binaries share: studies, figures, the paper's results, the report."""

import pathlib

from absl import flags

from oodgat_jax.cli.app import Definitions

RECORDS = pathlib.Path(__file__).parent.parent / "records"

# The flag of binaries that draw what others have recorded.
RECORDS_DIR: Definitions = {
    "records_dir": (
        flags.DEFINE_string,
        str(RECORDS),
        "Folder of the *.jsonl files.",
        {},
    ),
}
