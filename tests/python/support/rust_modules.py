"""Modules of a Rust crate, the modules that each of them uses, and the rings that these uses form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_TESTS = "#[cfg(test)]\nmod tests"
_COMMENT = re.compile(r"//[^\n]*")
_USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
_ALIAS = re.compile(r"\s+as\s+")

Item = tuple[str, str]
"""A module and the name of one of its items; the name is empty for the module itself."""


class Crate:
    """The modules of a crate, by path: `http::sessions`. The root is the empty path."""

    def __init__(self, folder: Path) -> None:
        self.texts: dict[str, str] = {}
        for file in sorted(folder.rglob("*.rs")):
            parts = list(file.relative_to(folder).with_suffix("").parts)
            parts = parts[:-1] if parts[-1] == "mod" or parts == ["lib"] else parts
            if not parts or parts[-1] != "tests":
                self.texts["::".join(parts)] = _COMMENT.sub("", file.read_text().partition(_TESTS)[0])
        self._exported: dict[Item, Item] = {}
        for module, text in self.texts.items():
            for is_public, path in _uses(text):
                item = self._resolve(module, path)
                if is_public and item is not None and item[1]:
                    self._exported[module, _ALIAS.split(path.rpartition("::")[2])[-1]] = item

    def edges(self) -> dict[str, set[str]]:
        """The modules that each module uses. Re-exported items count for the module that defines them."""
        return {module: self._used_by(module, text) for module, text in self.texts.items()}

    def _used_by(self, module: str, text: str) -> set[str]:
        paths = [path for is_public, path in _uses(text) if not is_public]
        paths += _PATH.findall(_USE.sub("", text))
        items = [self._resolve(module, path) for path in paths]
        used = {self._definition(item)[0] for item in items if item is not None}
        # A parent that names its children is the natural form of a module tree.
        return {other for other in used if other != module and not other.startswith(f"{module}::")}

    def _definition(self, item: Item) -> Item:
        seen: set[Item] = set()
        while item in self._exported and item not in seen:
            seen.add(item)
            item = self._exported[item]
        return item

    def _resolve(self, module: str, path: str) -> Item | None:
        names = [name.strip() for name in path.split("::")]
        place = module.split("::") if module else []
        if names[0] == "crate":
            place, names = [], names[1:]
        elif names[0] in ("self", "super"):
            while names and names[0] in ("self", "super"):
                place = place[:-1] if names[0] == "super" else place
                names = names[1:]
        elif "::".join([*place, names[0]]) not in self.texts:
            return None
        item = ""
        for name in names:
            if "::".join([*place, name]) in self.texts:
                place = [*place, name]
            else:
                item = item or _ALIAS.split(name)[0]
        return "::".join(place), item


def _uses(text: str) -> Iterator[tuple[bool, str]]:
    for found in _USE.finditer(text):
        for path in _expand(" ".join(found[2].split())):
            yield found[1] is not None, path


def _expand(path: str) -> Iterator[str]:
    """The single paths of a path with braces."""
    head, brace, body = path.partition("{")
    if not brace:
        yield path.strip()
        return
    depth, part = 0, ""
    for char in body.rpartition("}")[0] + ",":
        if char == "," and depth == 0:
            if part.strip():
                yield from _expand(head + part.strip())
            part = ""
            continue
        depth += (char == "{") - (char == "}")
        part += char


def rings(edges: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Sets of modules that reach each other (strongly connected components of more than one module)."""
    reached = {module: _reach(edges, module) for module in edges}
    found = {
        frozenset(other for other in reached[module] if module in reached.get(other, ())) | {module} for module in edges
    }
    return {frozenset(ring) for ring in found if len(ring) > 1}


def _reach(edges: Mapping[str, set[str]], module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = edges.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
