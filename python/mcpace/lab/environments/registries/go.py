"""Go modules, as go is configured. A version is one whose tag the proxy can find, listed or not."""

from __future__ import annotations

from packaging.version import Version

from mcpace.lab.environments.registries.asking import asked, ordered
from mcpace.lab.environments.registries.release import Release
from mcpace.lab.errors import ReleasesProblem


class Go:
    """`go list -m`. Times are left out: modules bring their dependencies' versions with them."""

    def where(self) -> str:
        return "go"

    def releases(self, package: str, where: str) -> list[Release]:
        # The module's own name comes first; with nothing after it, it has no versions.
        words = asked(["go", "list", "-m", "-versions", package], package).split()[1:]
        return ordered([Release(word.removeprefix("v"), None) for word in words], package)

    def unlisted(self, package: str, number: Version) -> Release | None:
        """A proxy lists what it was asked for before, which needn't be all."""
        if number.is_prerelease or number.is_devrelease:
            return None
        try:
            asked(["go", "list", "-m", f"{package}@v{number}"], package)
        except ReleasesProblem:
            return None
        return Release(str(number), None)
