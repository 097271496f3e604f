"""Figures of this machine, each a ratio to a floor measured in the same run (SPEC §19)."""
