"""Generates the contexts of findings for Python, TypeScript and the schema of the Run, from the catalogue in ``_core``.

Run as a program, it writes the Python module, which the words of findings import.

Design constraint: knows only the JSON schemas that the contexts use; any other schema fails here rather than being
guessed.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from typescript_types import interfaces

from mcpace import _core

MODULE = Path(__file__).parents[1] / "python" / "mcpace" / "report" / "model" / "contexts.py"

PREFIX = "#/$defs/"
WIDTH = 120
PLAIN = {"string": "str", "integer": "Whole", "number": "Number", "boolean": "bool"}
KEYWORDS = ("from",)


def python(catalogue: dict[str, Any]) -> str:
    """The module ``mcpace.report.model.contexts``.

    Its annotations are no strings, which pydantic would evaluate one by one each time that the module is loaded.
    """
    schemas = catalogue["schemas"]
    names = [entry["context"] for entry in catalogue["causes"]]
    parts = [
        '"""Facts of each finding. Made by `make docs` from crates/explain/src/findings: change them there."""',
        "from typing import ClassVar, Literal",
        "from pydantic import Field",
        "from mcpace.report.model.base import Number, Whole\nfrom mcpace.report.model.context import Context",
    ]
    parts += [_literal(name, schemas[name]) for name in sorted(set(schemas) - set(names))]
    parts += [_model(entry, schemas[entry["context"]]) for entry in catalogue["causes"]]
    lines = ["CONTEXTS: dict[str, tuple[type[Context], ...]] = {"]
    for code, variants in _by_code(catalogue).items():
        lines.append(f'    "{code}": ({", ".join(variants)},),')
    parts.append("\n".join([*lines, "}", '"""For each code the contexts that it may have."""']))
    return _formatted("\n\n".join(parts) + "\n")


def typescript(catalogue: dict[str, Any], contexts: dict[str, tuple[type[Any], ...]]) -> str:
    """Interfaces of all contexts, and the contexts of each code."""
    models = [model for variants in contexts.values() for model in variants]
    source = "crates/explain/src/findings"
    lines = ["/** For each code of a finding the contexts that it may have. */", "export interface Contexts {"]
    lines += [f'  "{code}": {" | ".join(variants)};' for code, variants in _by_code(catalogue).items()]
    return interfaces(source, *models) + "\n" + "\n".join([*lines, "}"]) + "\n"


def into_run_schema(schema: dict[str, Any], catalogue: dict[str, Any]) -> dict[str, Any]:
    """The Run's schema with the context of each code. Runs of other releases may lack members or have more."""
    definitions = schema["$defs"]
    for name, definition in catalogue["schemas"].items():
        assert name not in definitions, f"two definitions of {name}"
        definitions[name] = {key: value for key, value in definition.items() if key != "required"}
    for entry in catalogue["causes"]:
        definitions[entry["context"]]["description"] = _description(entry)
    definitions["Finding"]["allOf"] = [
        {"if": {"properties": {"code": {"const": code}}}, "then": {"properties": {"context": _any_of(variants)}}}
        for code, variants in _by_code(catalogue).items()
    ]
    return schema


def _by_code(catalogue: dict[str, Any]) -> dict[str, list[str]]:
    variants: dict[str, list[str]] = {}
    for entry in catalogue["causes"]:
        variants.setdefault(entry["code"], []).append(entry["context"])
    return variants


def _any_of(variants: list[str]) -> dict[str, Any]:
    references = [{"$ref": f"{PREFIX}{name}"} for name in variants]
    return references[0] if len(references) == 1 else {"anyOf": references}


def _description(entry: dict[str, Any]) -> str:
    found = " of a load" if entry["found_in"] == "load" else ""
    return f"Facts of `{entry['code']}`{found}. {entry['meaning']}"


def _literal(name: str, schema: dict[str, Any]) -> str:
    values = ", ".join(f'"{choice["const"]}"' for choice in schema["oneOf"])
    return f"{name} = Literal[{values}]\n{_docstring(schema['description'], '')}"


def _model(entry: dict[str, Any], schema: dict[str, Any]) -> str:
    lines = [f"class {entry['context']}(Context):", _docstring(_description(entry).replace("`", "``"), "    ")]
    lines += ["", f'    code: ClassVar[str] = "{entry["code"]}"']
    for member, shape in schema["properties"].items():
        name, default = (f"{member}_", f'Field(None, alias="{member}")') if member in KEYWORDS else (member, "None")
        lines.append(f"    {name}: {_type(shape)} | None = {default}")
        lines.append(_docstring(shape["description"].replace("`", "``"), "    "))
    return "\n".join(lines)


def _docstring(text: str, indent: str) -> str:
    whole = " ".join(text.split())
    return textwrap.fill(f'"""{whole}"""', WIDTH, initial_indent=indent, subsequent_indent=indent)


def _type(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"]).removeprefix(PREFIX)
    if "anyOf" in shape:
        (inner,) = [choice for choice in shape["anyOf"] if choice != {"type": "null"}]
        return _type(inner)
    kind = shape["type"]
    if isinstance(kind, list):
        (kind,) = [one for one in kind if one != "null"]
    if kind == "array":
        return f"list[{_type(shape['items'])}]"
    if kind == "object":
        return f"dict[str, {_type(shape['additionalProperties'])}]"
    return PLAIN[kind]


def _formatted(module: str) -> str:
    ruff = str(Path(sys.executable).with_name("ruff"))
    command = [ruff, "format", "--stdin-filename", str(MODULE), "-"]
    return subprocess.run(command, input=module, capture_output=True, text=True, check=True, timeout=60).stdout


if __name__ == "__main__":
    MODULE.write_text(python(_core.catalogue()))
