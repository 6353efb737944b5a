"""Authorization providers by server, which are kept from one connection to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Wallet(ABC):
    """The providers of an SDK. A subclass for each SDK creates them."""

    def __init__(self) -> None:
        self._providers: dict[str, Any] = {}

    @abstractmethod
    def prepare(self, url: str, auth: dict[str, Any]) -> Any:
        """Prepares everything that a provider needs, so that `construct()` is a single call. The storage is kept unless
        `fresh` is set."""

    def keep(self, url: str, provider: Any) -> None:
        self._providers[url] = provider

    def provider(self, url: str, auth: dict[str, Any]) -> Any:
        """The last provider for this server, or a new one."""
        if url not in self._providers:
            self.keep(url, self.prepare(url, auth).construct())
        return self._providers[url]
