"""Every statement the store runs, as text; one module per group of operations."""
