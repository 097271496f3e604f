"""The `hermes` command: one file per group, nothing heavy imported before it is needed."""
