"""Code that the binaries share: studies, trainings, figures, tables, the report."""
