"""The commands of `streamdsl` besides `run`, `check` and `demo`, one module each (docs/command-line.md)."""
