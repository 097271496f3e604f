"""Logs, with nothing in them that must not be there. Knows no configuration file and no home."""
