"""How a release gets onto this machine: one installer for each kind in adapter.toml.

An installer fills a folder that it is handed and says what was put there. Caches, locks between builders, checks and
what counts as finished are `environments`'s business; which versions exist is `adapters`'s.
"""

from __future__ import annotations

from mcpace.lab.adapter import InstallKind
from mcpace.lab.installers.cargo import Cargo
from mcpace.lab.installers.go import Go
from mcpace.lab.installers.maven import Maven
from mcpace.lab.installers.npm import Npm
from mcpace.lab.installers.own import Own
from mcpace.lab.installers.pypi import Pypi
from mcpace.lab.installers.wanted import Installed, Installer, Wanted

__all__ = ["INSTALLERS", "Installed", "Installer", "Wanted"]

INSTALLERS: dict[InstallKind, Installer] = {
    InstallKind.PYPI: Pypi(),
    InstallKind.CARGO: Cargo(),
    InstallKind.GO: Go(),
    InstallKind.NPM: Npm(),
    InstallKind.MAVEN: Maven(),
    InstallKind.OWN: Own(),
}
