"""Answers of `mcpace measure --inside` about tools that spend processor time, with real libraries.

Each cause has a control that is the advised change. The measured gain of that change is held against the estimate.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpace.lab.paths import find_uv
from support.finding_scenes import patient
from support.inside_measurement import contexts_by_code, measure_inside

PACKAGES = (
    "mcp==1.30.0",
    "beautifulsoup4==4.15.0",
    "jsonschema-rs==0.61.0",
    "orjson==3.13.0",
    "PyYAML==6.0.4",
    "selectolax==1.0.2",
    "sympy==1.14.0",
)

SERVER = """
import gc, importlib, json, sys
import jsonschema, jsonschema_rs, orjson, pydantic, yaml
from bs4 import BeautifulSoup
from mcp.server.fastmcp import FastMCP
from selectolax.lexbor import LexborHTMLParser

[way] = sys.argv[1:]
mcp = FastMCP("reports")
records = [{"id": n, "name": f"name {n}", "tags": ["a", "b"], "size": n / 7} for n in range(600)]
text_yaml = yaml.safe_dump(records[:40])
text_json = json.dumps(records * 60)
rows = "".join(f'<tr class="row"><td><a href="/{n}">item {n}</a></td></tr>' for n in range(300))
page = f"<html><body><table>{rows}</table></body></html>"
types = {"id": {"type": "integer"}, "size": {"type": "number"}}
item = {"type": "object", "required": ["id", "size"], "properties": types}
SCHEMA = {"type": "array", "items": item}
checker, quick_checker = jsonschema.Draft202012Validator(SCHEMA), jsonschema_rs.Draft202012Validator(SCHEMA)
PLUGINS = ("_pydecimal", "_pydatetime", "optparse", "argparse", "turtledemo", "pydoc", "doctest", "typing_extensions")

class Item(pydantic.BaseModel):
    id: int
    name: str
    tags: list[str]
    size: float

def make_adapter():
    class Inner(pydantic.BaseModel):
        id: int
        name: str
        tags: list[str]
        size: float
    return pydantic.TypeAdapter(list[Inner])

adapter = make_adapter()
items = [Item.model_validate(record) for record in records] * 20
dumped = [item.model_dump() for item in items]
plugins = [importlib.import_module(name) for name in PLUGINS if importlib.util.find_spec(name)]

if way == "import-at-start":
    import sympy
if way != "collections":
    gc.freeze()
    gc.set_threshold(10_000_000, 50, 1_000)

@mcp.tool()
async def report() -> str:
    result = None
    if way == "yaml":
        result = yaml.load(text_yaml, yaml.SafeLoader)
    elif way == "yaml-in-c":
        result = yaml.load(text_yaml, yaml.CSafeLoader)
    elif way == "json":
        result = json.loads(text_json)
    elif way == "orjson":
        result = orjson.loads(text_json)
    elif way == "soup":
        result = [link["href"] for link in BeautifulSoup(page, "html.parser").select("tr.row a")]
    elif way == "selectolax":
        result = [link.attributes["href"] for link in LexborHTMLParser(page).css("tr.row a")]
    elif way == "jsonschema":
        checker.validate(records)
    elif way == "jsonschema-rs":
        quick_checker.validate(records)
    elif way == "build-models":
        for _ in range(10):
            result = make_adapter().validate_python(records[:3])
    elif way == "build-models-once":
        for _ in range(10):
            result = adapter.validate_python(records[:3])
    elif way == "dump":
        result = [item.model_dump() for item in items]
    elif way == "keep-dumped":
        result = dumped
    elif way == "load-plugins":
        for name in PLUGINS:
            sys.modules.pop(name, None)
            try:
                result = importlib.import_module(name)
            except ImportError:
                pass
    elif way == "plugins-at-start":
        result = plugins
    elif way in ("import-in-call", "import-at-start"):
        import sympy
        result = sympy.Integer(3)
    elif way in ("collections", "rare-collections"):
        result = [[number] for number in range(700_000)]
    return str(type(result))

mcp.run()
"""


@dataclass(frozen=True)
class Proof:
    """A way of the tool that has a cause, and the way that is the advised change."""

    code: str
    way: str
    change: str
    library: str = ""

    def __str__(self) -> str:
        return self.way


PROOFS = (
    Proof("costly-library", "yaml", "yaml-in-c", "PyYAML"),
    Proof("costly-library", "soup", "selectolax", "beautifulsoup4"),
    Proof("validation-cost", "build-models", "build-models-once", "pydantic"),
    Proof("costly-library", "jsonschema", "jsonschema-rs", "jsonschema"),
    Proof("serialization-cost", "dump", "keep-dumped", "pydantic"),
    Proof("import-in-call", "load-plugins", "plugins-at-start"),
    Proof("gc-pauses", "collections", "rare-collections"),
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with the libraries."""
    folder = tmp_path_factory.mktemp("libraries") / "environment"
    uv = str(find_uv())
    subprocess.run([uv, "venv", "--quiet", "--python", "3.11", str(folder)], check=True, timeout=60)
    interpreter = str(folder / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", interpreter, *PACKAGES], check=True, timeout=300)
    return interpreter


def measured(python: str, way: str, folder: Path, *options: object) -> dict[str, Any]:
    """The case of the tool's calls."""
    program = folder / "reports.py"
    program.write_text(SERVER)
    return measure_inside([python, str(program), way], "report", folder, *options)


@pytest.mark.proof
@pytest.mark.network
@pytest.mark.parametrize("proof", PROOFS, ids=str)
@patient
def test_a_cost_of_processor_time_is_named_and_the_advised_change_gains_the_estimate(
    proof: Proof, python: str, tmp_path: Path
) -> None:
    before, after = (measured(python, way, tmp_path) for way in (proof.way, proof.change))
    found = contexts_by_code(before)
    assert proof.code in found, found
    context = found[proof.code]
    assert context["file"].endswith("reports.py"), context
    assert context["function"], context
    assert proof.library in ("", context.get("library")), context
    assert proof.code not in contexts_by_code(after), contexts_by_code(after)
    gained = before["inside"]["server_s"] - after["inside"]["server_s"]
    estimate = context["gain_ns"] / 1e9
    assert 0.5 * gained <= estimate <= 1.5 * gained, (before["inside"], after["inside"], context)
