"""The hosts and origins that an HTTP transport accepts, in the official SDK's form."""

from __future__ import annotations

from pydantic import BaseModel


class TransportSecuritySettings(BaseModel):
    """The ``Host`` and ``Origin`` headers that are accepted. An entry that ends with ``:*`` accepts any port."""

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: list[str] = []
    allowed_origins: list[str] = []
