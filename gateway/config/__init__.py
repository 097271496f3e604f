"""The home directory and `config.yaml`: found, read, resolved, checked, written. Runs nothing."""
