"""The base of every part of a Run."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Data only. Readers ignore members that they don't know, so that a run of a later minor release still loads."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore", allow_inf_nan=False)
