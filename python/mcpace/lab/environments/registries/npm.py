"""npm packages, as npm is configured: its list of upload times."""

from __future__ import annotations

import json

from packaging.version import Version

from mcpace.lab.environments.registries.asking import asked, ordered
from mcpace.lab.environments.registries.release import Release, moment
from mcpace.lab.errors import ReleasesProblem


class Npm:
    """`npm view`."""

    def where(self) -> str:
        return "npm"

    def releases(self, package: str, where: str) -> list[Release]:
        said = asked(["npm", "view", package, "time", "--json", "--loglevel=error"], package)
        return ordered(parse(said, package), package)

    def unlisted(self, package: str, number: Version) -> Release | None:
        """A registry lists all that it has."""
        return None


def parse(said: str, package: str) -> list[Release]:
    """Beside versions there are `created` and `modified`, which are none."""
    try:
        times = json.loads(said)
        return [Release(version, moment(text)) for version, text in times.items()]
    except (ValueError, TypeError, AttributeError) as error:
        raise ReleasesProblem(f"what npm says of {package} can't be understood: {error}") from None
