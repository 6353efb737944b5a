"""Permitted imports (ARCHITECTURE.md, 'Who may import whom'), over cargo's metadata and over Python's imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.rust_modules import Crate, rings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "mcpace"

# Dependencies of each crate among our own. A crate or dependency that is missing here, or here and gone, fails.
CRATES = {
    "wire": set(),
    "record": {"wire"},
    "explain": {"record"},
    "export": {"record", "explain"},
    "net": {"child-process", "client-protocol", "clock", "wire", "record", "spans", "oauth", "trust"},
    "spans": {"record"},
    "oauth": {"wire"},
    "client-protocol": {"wire", "oauth"},
    "child-process": {"wire"},
    "clock": set(),
    "client": {"child-process", "client-protocol", "wire", "oauth", "trust"},
    "serve": {"wire"},
    "auth": {"serve", "wire", "oauth", "trust"},
    "redis": {"serve", "wire"},
    "target": {"record", "wire"},
    "stats": set(),
    "trust": set(),
    "config-tree": set(),
    "load": {"clock", "wire", "stats", "trust"},
    "py": {
        "auth", "child-process", "client", "clock", "config-tree", "explain", "export", "load", "net", "record",
        "redis", "serve", "spans", "target", "wire",
    },
}  # fmt: skip

PURE = {"wire", "record", "explain", "export", "spans", "stats", "client-protocol", "config-tree"}
IMPURE_PACKAGES = {"tokio", "hyper", "hyper-util", "pyo3", "mio", "socket2", "rustix", "libc", "rand", "tokio-rustls"}
# Reading ahead on a thread changes nothing of what comes out.
THREADED = {"record": {"ahead.rs"}}
IMPURE_WORDS = re.compile(r"\bstd::(net|fs|env|process|thread)\b|\b(Instant|SystemTime)::now\b")

# Rings of modules inside a crate, each with the reason for which it stays. A ring that grows, or is gone, fails.
RINGS: dict[str, dict[frozenset[str], str]] = {
    "auth": {frozenset({"algorithm", "error"}): "the error names the algorithm that it refuses"},
    "client": {
        frozenset(
            {"client", "inbound", "subscription", "underway"}
        ): "a client's requests and its inbound messages are "
        "two halves of one state: a subscription is begun by the one and fed by the other"
    },
    "explain": {
        frozenset(
            {
                "findings::catalogue",
                "findings::concurrency::episodes",
                "findings::proof",
                "findings::scene",
                "findings::tally",
                "findings::transport::delayed_ack",
            }
        ): "the catalogue lists the rules, and each rule reads the scene that the catalogue's codes mark",
    },
    "py": {
        frozenset({"client", "recorder"}): "both take the same OAuth options",
    },
    "redis": {frozenset({"", "link", "process_inbox"}): "the root holds the options of both"},
    "serve": {
        frozenset(
            {
                "dispatch::call",
                "dispatch::guard_check",
                "dispatch::in_flight",
                "dispatch::raw_call",
                "dispatch::tasks",
            }
        ): "stages of one call, which a task runs again",
        frozenset({"service::ask", "service::context", "service::detach", "service::failure", "service::input"}): "a "
        "handler's context and the questions that it asks through it",
        frozenset({"http::http_server", "http::legacy", "http::post", "http::reply"}): "methods of one server in a "
        "file for each HTTP method",
        frozenset({"stdio::answer", "stdio::client"}): "one client's lines, in and out",
        frozenset({"service::raw", "service::tool"}): "a tool of raw bytes is a tool",
    },
    "target": {frozenset({"server", "site", "target"}): "a scripted target is served by the server that it starts"},
    "wire": {frozenset({"mcp::content", "mcp::resources"}): "content embeds resources, and resources have content"},
}

# Imports of each Python part from the others.
PARTS = {
    "system": {"_core"},
    "cli": {"lab", "lab_tools", "migration", "report", "server", "system", "ui", "_core"},
    "lab": {"report", "system", "_core"},
    "lab_tools": {"lab", "report", "server", "system", "types"},
    "report": set(),
    "ui": {"lab", "report", "system"},
    "server": {"_core", "types"},
    "fastmcp": {"client", "server", "types"},
    "django": {"server", "types"},
    "client": {"server", "types", "_core"},
    "testing": {"client", "server", "_core"},
    "migration": set(),
}

# Imports of each folder and module of the server from the others when it runs; imports for type checkers don't count.
SERVER = {
    "errors": set(),
    "settings": set(),
    "sdk_compat": {"errors"},
    "calls": {"errors", "sdk_compat"},
    "auth": {"errors", "sdk_compat"},
    "registration": {"auth", "calls", "errors", "sdk_compat"},
    "core": {"auth", "calls", "errors", "registration", "sdk_compat"},
    "running": {"adopt", "errors", "settings", "telemetry"},
    "adopt": {"core", "registration", "running"},
    "telemetry": {"errors", "running"},
    "app": {
        "auth", "calls", "core", "errors", "registration", "running", "sdk_compat", "settings", "telemetry",
    },
    # Import paths of older releases of the documents, and of the compiled part.
    "guards": {"auth"},
    "tokens": {"auth"},
}  # fmt: skip

# lab hands words to the Run through report, and nothing but its models and words.
REPORT_FOR_LAB = {
    "mcpace.report.model.answer",
    "mcpace.report.model.base",
    "mcpace.report.model.context",
    "mcpace.report.model.contexts",
    "mcpace.report.model.drift",
    "mcpace.report.model.processes",
    "mcpace.report.model.replicas",
    "mcpace.report.model.run",
    "mcpace.report.model.comparison",
    "mcpace.report.model.factors",
    "mcpace.report.model.gateway",
    "mcpace.report.model.inside",
    "mcpace.report.model.ladder",
    "mcpace.report.model.layers",
    "mcpace.report.model.limits",
    "mcpace.report.model.recording",
    "mcpace.report.model.load",
    "mcpace.report.model.servers",
    "mcpace.report.model.start",
    "mcpace.report.model.tokens",
    "mcpace.report.words",
    "mcpace.report.words.findings",
}


def crates() -> dict[str, dict]:
    done = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return {p["name"].removeprefix("mcpace-"): p for p in json.loads(done.stdout)["packages"]}


def own(package: dict) -> set[str]:
    """Our crates that a crate depends on, tests aside."""
    names = {d["name"] for d in package["dependencies"] if d["kind"] is None}
    return {name.removeprefix("mcpace-") for name in names if name.startswith("mcpace-")}


def test_crates_depend_only_downwards() -> None:
    found = crates()
    assert set(found) == set(CRATES)
    for name, package in found.items():
        assert own(package) - CRATES[name] == set(), f"crates/{name} may not depend on these"
        assert CRATES[name] - own(package) == set(), f"crates/{name} depends on these no longer"


@pytest.mark.parametrize("name", sorted(CRATES))
def test_modules_of_a_crate_use_each_other_one_way(name: str) -> None:
    found = rings(Crate(ROOT / "crates" / name / "src").edges())
    known = set(RINGS.get(name, {}))
    assert found - known == set(), f"crates/{name}: modules that reach each other; cut an edge, or list the ring"
    assert known - found == set(), f"crates/{name}: these rings are gone; take them off the list"


@pytest.mark.parametrize("name", sorted(PURE))
def test_pure_crates_touch_no_system(name: str) -> None:
    dependencies = {d["name"] for d in crates()[name]["dependencies"] if d["kind"] is None}
    assert not dependencies & IMPURE_PACKAGES
    folder, threaded = ROOT / "crates" / name / "src", set()
    for source in folder.rglob("*.rs"):
        code = source.read_text().split("#[cfg(test)]")[0]
        if source.relative_to(folder).as_posix() in THREADED.get(name, ()) and "std::thread" in code:
            threaded.add(source.relative_to(folder).as_posix())
            code = code.replace("std::thread", "")
        lines = [line for line in code.splitlines() if not line.strip().startswith("//")]
        for line in lines:
            assert not IMPURE_WORDS.search(line), f"{source.relative_to(ROOT)}: {line.strip()}"
    assert threaded == THREADED.get(name, set())


def test_only_py_knows_python() -> None:
    for name, package in crates().items():
        if name != "py":
            assert "pyo3" not in {d["name"] for d in package["dependencies"]}


WORKER = PACKAGE / "lab" / "layers" / "worker"


def imports(source: Path) -> set[str]:
    """Modules of ours that a file imports, by absolute name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}: imports are absolute here"
            module = node.module or ""
            found.add(module)
            if (ROOT / "python" / module.replace(".", "/")).is_dir():
                found |= {f"{module}.{alias.name}" for alias in node.names}
    return {name for name in found if name == "mcpace" or name.startswith("mcpace.")}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_python_parts_import_only_leftwards(part: str) -> None:
    seen: set[str] = set()
    of_report: set[str] = set()
    for source in (PACKAGE / part).rglob("*.py"):
        if source.is_relative_to(WORKER):
            continue
        for name in imports(source):
            other = name.split(".")[1] if "." in name else ""
            if other in {part, "", "__version__"}:
                continue
            seen.add(other)
            assert other in PARTS[part], f"{source.relative_to(ROOT)} imports {name}"
            if part == "lab" and other == "report":
                of_report.add(name)
                assert name in REPORT_FOR_LAB, (
                    f"{source.relative_to(ROOT)} imports {name}: the lab knows the Run and its words only"
                )
    assert PARTS[part] - seen == set(), f"python/mcpace/{part} imports these no longer"
    if part == "lab":
        assert REPORT_FOR_LAB - of_report == set(), "the lab imports these no longer"


def imports_at_run_time(source: Path) -> set[str]:
    """Modules of ours that a file imports, except for type checkers."""
    tree = ast.parse(source.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names} if module == "mcpace.server" else {module}
    return {name for name in names if name.startswith("mcpace.")}


def test_the_folders_of_the_server_import_only_downwards() -> None:
    server = PACKAGE / "server"
    found: dict[str, set[str]] = {}
    for source in server.rglob("*.py"):
        place = source.relative_to(server).with_suffix("").parts
        if place == ("__init__",):
            assert imports(source) == set()
            continue
        others = {name.split(".")[2] for name in imports_at_run_time(source) if name.startswith("mcpace.server.")}
        found.setdefault(place[0], set()).update(others - {place[0]})
    assert found == SERVER


def test_other_packages_use_no_private_member_of_a_server() -> None:
    for part in ("client", "fastmcp", "django", "testing"):
        for source in (PACKAGE / part).rglob("*.py"):
            assert "server._binding" not in source.read_text(), f"{source}: the internal interface is __mcpace_core__"


def test_only_its_own_part_knows_django() -> None:
    foreign = {"django", "rest_framework", "rest_framework_services", "oauth2_provider", "asgiref"}
    for source in PACKAGE.rglob("*.py"):
        place = source.relative_to(PACKAGE)
        # The layers' worker runs within the project whose server it measures.
        if place.parts[0] in ("django", "adapters") or source.is_relative_to(WORKER):
            continue
        for node in ast.walk(ast.parse(source.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & foreign, place


def test_the_layers_worker_runs_in_any_interpreter() -> None:
    """At once only the standard library and its own files: an SDK, ours too, is loaded where its probe needs it. And
    nobody of ours imports it: it is a program."""
    for source in WORKER.rglob("*.py"):
        for node in ast.parse(source.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                assert top in sys.stdlib_module_names | {"mcpace_layers"}, f"{source}: {name}"
    for source in PACKAGE.rglob("*.py"):
        assert not any(name.startswith("mcpace.lab.layers.worker.") for name in imports(source)), source


def test_types_know_nobody_and_the_package_only_names_its_parts() -> None:
    # Messages are a part of the types that is loaded with the first of them.
    assert imports(PACKAGE / "types.py") == {"mcpace.messages"}
    assert imports(PACKAGE / "messages.py") == {"mcpace.types"}
    allowed = {"server", "client", "types"}
    assert {name.split(".")[1] for name in imports(PACKAGE / "__init__.py")} == allowed
    # Only for type checkers, so that loading a name loads no other's part.
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    at_once = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.ImportFrom) and node.module in ("__future__", "typing") for node in at_once)


def test_every_part_is_listed() -> None:
    parts = {p.name for p in PACKAGE.iterdir() if p.is_dir() and not p.name.startswith("__")}
    # adapters is a link, so that an installed package carries them too.
    assert parts == set(PARTS) | {"adapters"}


def test_adapters_import_none_of_ours() -> None:
    """But for the one that has our own runtime under test, and that only what users see of it."""
    ours = ROOT / "adapters" / "mcpace-python"
    shown = {"mcpace", "mcpace.MCPServer", "mcpace.types", "mcpace._core"}
    programs = list((ROOT / "adapters").rglob("*.py"))
    assert programs
    assert set().union(*map(imports, ours.rglob("*.py"))) == shown
    for source in programs:
        assert source.parent == ours or imports(source) == set(), source
