"""Releases of npm packages, read with npm's configuration from the list of upload times."""

from __future__ import annotations

import json

from packaging.version import Version

from mcpace.lab.environments.registries.asking import query_tool, sort_releases
from mcpace.lab.environments.registries.release import Release, parse_time
from mcpace.lab.errors import ReleasesProblem


class Npm:
    """Reads `npm view`."""

    def index_address(self) -> str:
        return "npm"

    def listed_releases(self, package: str, where: str) -> list[Release]:
        output = query_tool(["npm", "view", package, "time", "--json", "--loglevel=error"], package)
        return sort_releases(parse_releases(output, package), package)

    def find_unlisted(self, package: str, number: Version) -> Release | None:
        """Returns `None`: the registry lists all releases."""
        return None


def parse_releases(output: str, package: str) -> list[Release]:
    """Parses the upload times. The keys `created` and `modified` aren't versions; `ordered` drops them."""
    try:
        times = json.loads(output)
        return [Release(version, parse_time(text)) for version, text in times.items()]
    except (ValueError, TypeError, AttributeError) as error:
        raise ReleasesProblem(f"what npm says of {package} can't be understood: {error}") from None
