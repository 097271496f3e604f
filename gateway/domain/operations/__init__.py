"""What the core asks of the store: one value in, one transaction, one value out.

Nothing here can be held open: there is no unit of work to begin or to commit (CONTRACTS §a).
"""
