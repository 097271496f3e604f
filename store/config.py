"""The `store` section of config.yaml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class StoreConfig(BaseModel):
    """Where everything is kept, and for how long."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: Annotated[str, Field(description='"" is SQLite in the home.')] = ""
    retention_days: Annotated[
        int, Field(ge=0, description="Events and media older than this are pruned; 0 keeps them.")
    ] = 0
