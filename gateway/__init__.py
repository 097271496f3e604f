"""The gateway: the core (domain, ports, runtime) and its outermost shell (app, cli)."""
