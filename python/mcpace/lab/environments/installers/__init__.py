"""Installers of releases, one for each kind in adapter.toml.

An installer fills a given folder and returns the installed versions. Module `environment` has the cache, the locks
between builders, the checks and the criterion of a finished folder; `releases` knows which versions exist.
"""

from __future__ import annotations

from mcpace.lab.adapters.adapter import InstallKind
from mcpace.lab.environments.installers.cargo import Cargo
from mcpace.lab.environments.installers.go import Go
from mcpace.lab.environments.installers.maven import Maven
from mcpace.lab.environments.installers.npm import Npm
from mcpace.lab.environments.installers.own import Own
from mcpace.lab.environments.installers.protocol import Installed, Installer, InstallRequest
from mcpace.lab.environments.installers.pypi import Pypi

__all__ = ["INSTALLERS", "InstallRequest", "Installed", "Installer"]

INSTALLERS: dict[InstallKind, Installer] = {
    InstallKind.PYPI: Pypi(),
    InstallKind.CARGO: Cargo(),
    InstallKind.GO: Go(),
    InstallKind.NPM: Npm(),
    InstallKind.MAVEN: Maven(),
    InstallKind.OWN: Own(),
}
