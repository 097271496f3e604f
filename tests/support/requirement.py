"""Ties a test to the behaviour it proves; `tests/requirements.tsv` lists the ids."""

import pytest


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as proof of these rows of `tests/requirements.tsv`."""
    return pytest.mark.requirement(*ids)
