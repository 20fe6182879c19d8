"""The command line: flags, start and end of binaries, progress, `oodgat`."""
