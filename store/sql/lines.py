"""Statement texts as lines."""


def lines(*parts: str) -> str:
    """Join the lines of a statement; an empty first one continues another text."""
    return "\n".join(parts)
