"""The files that make ``mcpace mcp`` installable: the registry's ``server.json``, and the bundle for desktop hosts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from mcpace import __version__
from mcpace.lab_tools.file_access import FileAccess
from mcpace.lab_tools.lab_process import LabProcess
from mcpace.lab_tools.server import LabTools
from mcpace.lab_tools.target_access import TargetAccess
from support import interop

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "packaging" / "mcpb"
REGISTRY_LINTER = "skillsaw==0.22.0"
"""Package with the registry's released schemas and its further rules."""


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(interop.installed(REGISTRY_LINTER)).parent / "skillsaw"
    words = ("lint", "--strict", "--no-plugins", "--no-custom-rules", folder)
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.network
def test_server_json_is_valid_for_the_registry(tmp_path: Path) -> None:
    server = json.loads((ROOT / "server.json").read_text())
    (tmp_path / "server.json").write_text(json.dumps(server))
    done = lint(tmp_path)
    assert done.returncode == 0 and "Repo type: mcp-registry" in done.stdout, done.stdout
    (tmp_path / "server.json").write_text(json.dumps(server | {"version": "latest"}))
    assert lint(tmp_path).returncode == 1


def test_versions_and_names_of_the_packages_agree() -> None:
    server = json.loads((ROOT / "server.json").read_text())
    manifest = json.loads((BUNDLE / "manifest.json").read_text())
    project = tomllib.loads((BUNDLE / "pyproject.toml").read_text())["project"]
    [package] = server["packages"]
    assert {server["version"], package["version"], manifest["version"], project["version"]} == {__version__}
    requirement = f"{package['identifier']}[lab]=={__version__}"
    assert project["dependencies"] == [requirement] == [package["runtimeArguments"][0]["value"]]
    # The registry accepts a package of PyPI whose description names the server.
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text()


def test_options_and_tools_that_the_packages_name_exist(tmp_path: Path) -> None:
    reference = (ROOT / "docs" / "cli.md").read_text().partition("## mcpace mcp\n")[2].partition("\n## ")[0]
    [package] = json.loads((ROOT / "server.json").read_text())["packages"]
    named = {one["name"] for one in package["packageArguments"] if one["type"] == "named"}
    assert named and named <= set(re.findall(r"--[a-z-]+", reference))
    manifest = json.loads((BUNDLE / "manifest.json").read_text())
    tools = LabTools(TargetAccess(), FileAccess(tmp_path, tmp_path), LabProcess(tmp_path), tmp_path)
    assert {tool["name"] for tool in manifest["tools"]} == {
        tool.name for tool in asyncio.run(tools.server.list_tools())
    }


@pytest.mark.network
def test_the_packer_accepts_the_bundle_and_it_starts_the_server(tmp_path: Path) -> None:
    bundle = tmp_path / "mcpace.mcpb"
    words = ["make", "-s", "-C", str(ROOT), f"PYTHON={sys.executable}", f"MCPB_OUT={bundle}", "mcpb"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(bundle) as packed:
        assert sorted(packed.namelist()) == ["manifest.json", "pyproject.toml", "server/main.py"]
        packed.extractall(tmp_path / "unpacked")
    # A host leaves an optional setting empty, or leaves its reference as it is.
    settings = {
        "MCPACE_BUNDLE_FOLDER": str(tmp_path),
        "MCPACE_BUNDLE_CONFIG": "${user_config.config}",
        "MCPACE_BUNDLE_YES": "false",
    }
    started = subprocess.run(
        [sys.executable, tmp_path / "unpacked" / "server" / "main.py"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, **settings, "MCPACE_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    assert "serving mcpace: 6 tools on stdio" in started.stderr
