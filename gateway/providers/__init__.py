"""Model providers behind `gateway.ports.ModelProvider`: configured models, and guided mode.

`config` reads the `model` section, `models` opens what it says, `guided` works without a model.
Nothing here imports a provider package before a model is asked.
"""
