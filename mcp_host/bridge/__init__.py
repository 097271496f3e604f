"""`hermes mcp serve`: other agents read, send, wait and decide through the gateway.

Knows neither the store nor the control socket: it is given their ports.
"""
