"""Values, ids and the error tree. Standard library only; nothing here does I/O."""
