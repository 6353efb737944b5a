"""Releases of Go modules, read with go's configuration. A version exists if the proxy finds its tag, listed or not."""

from __future__ import annotations

from packaging.version import Version

from mcpace.lab.environments.registries.asking import query_tool, sort_releases
from mcpace.lab.environments.registries.release import Release
from mcpace.lab.errors import ReleasesProblem


class Go:
    """Reads `go list -m`. Upload times aren't needed: modules name the versions of their dependencies."""

    def index_address(self) -> str:
        return "go"

    def listed_releases(self, package: str, where: str) -> list[Release]:
        # The module's own name comes first; with nothing after it, it has no versions.
        words = query_tool(["go", "list", "-m", "-versions", package], package).split()[1:]
        return sort_releases([Release(word.removeprefix("v"), None) for word in words], package)

    def find_unlisted(self, package: str, number: Version) -> Release | None:
        """Finds a version that the proxy doesn't list: proxies list only versions that were requested before."""
        if number.is_prerelease or number.is_devrelease:
            return None
        try:
            query_tool(["go", "list", "-m", f"{package}@v{number}"], package)
        except ReleasesProblem:
            return None
        return Release(str(number), None)
