"""The control API of a running gateway: HTTP on a Unix socket that only its own user can open."""
