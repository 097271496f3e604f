"""How a server is reached: one module per transport, behind `factory`."""
