"""Who is asked for authorization providers: those of each server, kept from one connection to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Wallet(ABC):
    """An SDK's providers. How one is made is the SDK's own."""

    def __init__(self) -> None:
        self._providers: dict[str, Any] = {}

    @abstractmethod
    def prepare(self, url: str, auth: dict[str, Any]) -> Any:
        """All that a provider needs, so that `construct()` is one call. The storage is kept unless `fresh`."""

    def keep(self, url: str, provider: Any) -> None:
        self._providers[url] = provider

    def provider(self, url: str, auth: dict[str, Any]) -> Any:
        """The provider made last for this server, or a new one."""
        if url not in self._providers:
            self.keep(url, self.prepare(url, auth).construct())
        return self._providers[url]
