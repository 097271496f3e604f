"""One package per chat platform; they never import one another."""
