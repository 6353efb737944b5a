"""Components of a FastMCP server: their keys, their names in another server, and their visibility."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from mcpace.server.registration.uri_template import UriTemplate

Kind = Literal["tool", "resource", "template", "prompt"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_CRITERIA = frozenset({"names", "keys", "tags", "components", "match_all", "version"})


def key_of(kind: Kind, entry: Any) -> str:
    """The key of a component."""
    return str(entry.uri) if kind == "resource" else entry.uri_template if kind == "template" else entry.name


def move_component(kind: Kind, entry: Any, namespace: str | None) -> Any:
    """A copy of a component for another server, renamed to ``namespace_name`` or ``scheme://namespace/path``."""
    if not namespace:
        return entry
    if kind in ("tool", "prompt"):
        return replace(entry, name=f"{namespace}_{entry.name}")
    uri = _add_namespace(key_of(kind, entry), namespace)
    if kind == "template":
        return replace(entry, uri_template=uri, template=UriTemplate.parse(uri))
    return entry.model_copy(update={"uri": uri}) if hasattr(entry, "model_copy") else entry.moved(uri)


def _add_namespace(uri: str, namespace: str) -> str:
    scheme, mark, rest = uri.partition("://")
    return f"{scheme}://{namespace}/{rest}" if mark else uri


class Visibility:
    """The rules of ``enable()`` and ``disable()``. The last rule that matches a component decides."""

    def __init__(self) -> None:
        self._rules: list[tuple[bool, Mapping[str, Any]]] = []

    def add(self, enabled: bool, criteria: Mapping[str, Any]) -> None:
        """Adds a rule. Raises ``TypeError`` for an unknown criterion."""
        unknown = criteria.keys() - _CRITERIA
        if unknown:
            raise TypeError(f"enable() and disable() take {', '.join(sorted(_CRITERIA))}; not {min(unknown)!r}")
        self._rules.append((enabled, criteria))

    def is_shown(self, kind: Kind, key: str, entry: Any) -> bool:
        """Whether a component is shown."""
        return next((enabled for enabled, rule in reversed(self._rules) if _matches_rule(rule, kind, key, entry)), True)


def _matches_rule(rule: Mapping[str, Any], kind: Kind, key: str, entry: Any) -> bool:
    if rule.get("match_all"):
        return True
    names, keys, tags, kinds = (rule.get(name) for name in ("names", "keys", "tags", "components"))
    if names is None and keys is None and tags is None and kinds is None:
        return False
    return (
        (kinds is None or kind in kinds)
        and (keys is None or f"{kind}:{key}@" in keys or f"{kind}:{key}" in keys)
        and (names is None or key in names or entry.name in names)
        and (tags is None or bool(frozenset(getattr(entry, "tags", ())) & frozenset(tags)))
    )
