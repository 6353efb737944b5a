"""How a release gets onto this machine: one installer for each kind in adapter.toml.

An installer fills a folder that it is handed and says what was put there. Caches, locks between builders, checks and
what counts as finished are `environments`'s business; which versions exist is `adapters`'s.
"""

from __future__ import annotations

from mcpace.lab.adapters.adapter import InstallKind
from mcpace.lab.environments.installers.cargo import Cargo
from mcpace.lab.environments.installers.go import Go
from mcpace.lab.environments.installers.maven import Maven
from mcpace.lab.environments.installers.npm import Npm
from mcpace.lab.environments.installers.own import Own
from mcpace.lab.environments.installers.pypi import Pypi
from mcpace.lab.environments.installers.wanted import Installed, Installer, Wanted

__all__ = ["INSTALLERS", "Installed", "Installer", "Wanted"]

INSTALLERS: dict[InstallKind, Installer] = {
    InstallKind.PYPI: Pypi(),
    InstallKind.CARGO: Cargo(),
    InstallKind.GO: Go(),
    InstallKind.NPM: Npm(),
    InstallKind.MAVEN: Maven(),
    InstallKind.OWN: Own(),
}
