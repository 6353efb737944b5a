"""URI templates (RFC 6570): parsing, expansion, and matching of URIs.

Levels 1 to 3, and of level 4 the explode modifier of path-like expressions (``{/path*}``). Matching never backtracks:
for each variable it takes time linear in the URI, which the client chooses. So at most one variable may span several
segments (``{+path}``, ``{#part}``, ``{/path*}``), and no two variables may touch. Query variables at the end
(``{?q,page}``) match in any order, and are optional.

Design constraint: pure. :mod:`mcpace.server.registration.path_security` decides which values are safe as paths.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from mcpace.server.errors import RegistrationError

Values = dict[str, str | list[str]]

MAX_TEMPLATE = 8_192
MAX_URI = 65_536
MAX_VARIABLES = 256

_NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_RESERVED = ":/?#[]@!$&'()*+,;="


class InvalidUriTemplate(RegistrationError):
    """An invalid template. ``position`` is the place of the fault, if there is a single one."""

    def __init__(self, message: str, *, template: str, position: int | None = None) -> None:
        where = "" if position is None else f" at position {position}"
        super().__init__(f"URI template {template!r}{where}: {message}")
        self.template = template
        self.position = position


@dataclass(frozen=True, slots=True)
class Operator:
    """The syntax of one kind of expression (RFC 6570 §3.2.1, Appendix A)."""

    first: str
    separator: str
    is_named: bool
    keeps_reserved: bool
    empty: str
    """The text after the name of an empty value."""
    stops: str
    """Characters that values contain in escaped form only."""


_OPERATORS = {
    "": Operator("", ",", False, False, "", "/?#&,"),
    "+": Operator("", ",", False, True, "", "?#"),
    "#": Operator("#", ",", False, True, "", ""),
    ".": Operator(".", ".", False, False, "", "./?#"),
    "/": Operator("/", "/", False, False, "", "/?#"),
    ";": Operator(";", ";", True, False, "", ";/?#"),
    "?": Operator("?", "&", True, False, "=", "&#"),
    "&": Operator("&", "&", True, False, "=", "&#"),
}


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of an expression."""

    name: str
    operator: str
    explode: bool = False

    @property
    def spans(self) -> bool:
        """Whether a value may span several segments."""
        return self.explode or self.operator in ("+", "#")


@dataclass(frozen=True, slots=True)
class _Expression:
    operator: str
    variables: tuple[Variable, ...]


_Part = str | _Expression
_Atom = str | Variable


class UriTemplate:
    """A URI template. Make one with :meth:`parse`."""

    def __init__(self, template: str, parts: Sequence[_Part]) -> None:
        self.template = template
        self._parts = tuple(parts)
        self.variables = [one for part in parts if not isinstance(part, str) for one in part.variables]
        path, self._query = _split_query(self._parts)
        atoms = _atoms(path)
        _check_touching(atoms, template)
        spanning = [index for index, atom in enumerate(atoms) if isinstance(atom, Variable) and atom.spans]
        if len(spanning) > 1:
            raise InvalidUriTemplate("only one variable may span several segments", template=template)
        self._at = spanning[0] if spanning else None
        self._atoms = atoms

    @classmethod
    def parse(cls, template: str) -> UriTemplate:
        """Reads a template. Raises :class:`InvalidUriTemplate`."""
        if len(template) > MAX_TEMPLATE:
            raise InvalidUriTemplate(f"longer than {MAX_TEMPLATE} characters", template=template)
        return cls(template, _template_parts(template))

    @property
    def variable_names(self) -> list[str]:
        """All variables in the order of the template."""
        return [variable.name for variable in self.variables]

    @property
    def query_variable_names(self) -> frozenset[str]:
        """The variables that are optional for clients."""
        return frozenset(variable.name for variable in self._query)

    def __str__(self) -> str:
        return self.template

    def expand(self, values: Mapping[str, str | Sequence[str]]) -> str:
        """The URI for these values. A variable without a value expands to nothing."""
        return "".join(part if isinstance(part, str) else _expand_variable(part, values) for part in self._parts)

    def match(self, uri: str) -> Values | None:
        """The decoded values of the variables in a URI; ``None`` if the URI does not match."""
        if len(uri) > MAX_URI:
            return None
        if not self._query:
            return self._scan_uri(uri)
        path, _, query = uri.partition("#")[0].partition("?")
        values = self._scan_uri(path)
        if values is not None and query:
            given = _query_values(query)
            values |= {one.name: given[one.name] for one in self._query if one.name in given}
        return values

    def _scan_uri(self, uri: str) -> Values | None:
        if self._at is None:
            ended = _from_end(self._atoms, uri, is_whole=True)
            return ended[0] if ended is not None and ended[1] == 0 else None
        ended = _from_end(self._atoms[self._at + 1 :], uri, is_whole=False)
        if ended is None:
            return None
        begun = _from_start(self._atoms[: self._at], uri, ended[1])
        if begun is None:
            return None
        spanning = self._atoms[self._at]
        assert isinstance(spanning, Variable)
        value = _spanned_values(spanning, uri[begun[1] : ended[1]])
        return None if value is None else {**begun[0], spanning.name: value, **ended[0]}


# Reading -------------------------------------------------------------------------------------------------------------


def _template_parts(template: str) -> list[_Part]:
    parts: list[_Part] = []
    names: set[str] = set()
    at = 0
    while at < len(template):
        opening = template.find("{", at)
        literal = template[at:] if opening < 0 else template[at:opening]
        if "}" in literal:
            raise InvalidUriTemplate("a brace closes that didn't open", template=template, position=at)
        if literal:
            parts.append(literal)
        if opening < 0:
            break
        closing = template.find("}", opening)
        if closing < 0:
            raise InvalidUriTemplate("a brace doesn't close", template=template, position=opening)
        expression = _parse_expression(template, template[opening + 1 : closing], opening)
        for variable in expression.variables:
            if variable.name in names:
                raise InvalidUriTemplate(f"variable {variable.name!r} is there twice", template=template)
            names.add(variable.name)
        if len(names) > MAX_VARIABLES:
            raise InvalidUriTemplate(f"more than {MAX_VARIABLES} variables", template=template)
        parts.append(expression)
        at = closing + 1
    return parts


def _parse_expression(template: str, body: str, position: int) -> _Expression:
    operator = body[:1] if body[:1] in _OPERATORS and body[:1] else ""
    variables = []
    for written in body[len(operator) :].split(","):
        name = written.removesuffix("*")
        explode = name != written
        if ":" in name:
            raise InvalidUriTemplate("the prefix modifier ':' is not supported", template=template, position=position)
        if not _NAME.fullmatch(name):
            raise InvalidUriTemplate(f"{name!r} is no variable's name", template=template, position=position)
        if explode and operator not in ("/", ".", ";"):
            raise InvalidUriTemplate(
                "the explode modifier '*' is supported in {/name*}, {.name*} and {;name*} only",
                template=template,
                position=position,
            )
        variables.append(Variable(name, operator, explode))
    return _Expression(operator, tuple(variables))


def _split_query(parts: Sequence[_Part]) -> tuple[Sequence[_Part], list[Variable]]:
    """The query expressions at the end, which match in any order, apart from the rest."""
    cut = len(parts)
    while cut > 0:
        part = parts[cut - 1]
        if isinstance(part, str) or part.operator not in ("?", "&"):
            break
        cut -= 1
    tail = [part for part in parts[cut:] if not isinstance(part, str)]
    if not tail or tail[0].operator != "?":
        return parts, []
    for part in parts[:cut]:
        marks = part if isinstance(part, str) else part.operator
        if "?" in marks or "#" in marks:
            # The first question mark would not be the expression's.
            return parts, []
    return parts[:cut], [variable for part in tail for variable in part.variables]


def _atoms(parts: Sequence[_Part]) -> list[_Atom]:
    atoms: list[_Atom] = []

    def add(text: str) -> None:
        if atoms and isinstance(atoms[-1], str):
            atoms[-1] += text
        elif text:
            atoms.append(text)

    for part in parts:
        if isinstance(part, str):
            add(part)
            continue
        operator = _OPERATORS[part.operator]
        for index, variable in enumerate(part.variables):
            if not variable.explode:
                add(operator.separator if index else operator.first)
                if operator.is_named:
                    # `;name` of an empty value has no `=`, so the variable captures the `=` of other values.
                    add(variable.name + operator.empty)
            atoms.append(variable)
    return atoms


def _check_touching(atoms: Sequence[_Atom], template: str) -> None:
    for before, after in itertools.pairwise(atoms):
        if isinstance(before, Variable) and isinstance(after, Variable):
            raise InvalidUriTemplate(
                f"variables {before.name!r} and {after.name!r} touch, so that nobody knows where one ends",
                template=template,
            )


# Matching ------------------------------------------------------------------------------------------------------------


def _from_end(atoms: Sequence[_Atom], uri: str, *, is_whole: bool) -> tuple[Values, int] | None:
    """Matches backwards: each variable begins after the last occurrence of the literal text before it."""
    values: Values = {}
    end = len(uri)
    for index in range(len(atoms) - 1, -1, -1):
        atom = atoms[index]
        if isinstance(atom, str):
            if not uri.endswith(atom, 0, end) or len(atom) > end:
                return None
            end -= len(atom)
            continue
        start = 0
        if index > 0:
            before = atoms[index - 1]
            assert isinstance(before, str)
            found = (0 if uri.startswith(before) else -1) if index == 1 and is_whole else uri.rfind(before, 0, end)
            start = found + len(before)
            if found < 0 or start > end:
                return None
        value = _captured_values(atom, uri[start:end])
        if value is None:
            return None
        values[atom.name] = value
        end = start
    return values, end


def _from_start(atoms: Sequence[_Atom], uri: str, limit: int) -> tuple[Values, int] | None:
    """Matches forwards: each variable ends at the first occurrence of the literal text after it."""
    values: Values = {}
    at = 0
    for index, atom in enumerate(atoms):
        if isinstance(atom, str):
            if not uri.startswith(atom, at, limit):
                return None
            at += len(atom)
            continue
        after = atoms[index + 1] if index + 1 < len(atoms) else ""
        assert isinstance(after, str)
        end = uri.find(after, at, limit) if after else limit
        value = None if end < 0 else _captured_values(atom, uri[at:end])
        if value is None:
            return None
        values[atom.name] = value
        at = end
    return values, at


def _captured_values(variable: Variable, raw: str) -> str | None:
    operator = _OPERATORS[variable.operator]
    if operator.is_named and not operator.empty and raw:
        if raw[0] != "=":
            return None
        raw = raw[1:]
    return None if any(mark in operator.stops for mark in raw) else unquote(raw)


def _spanned_values(variable: Variable, raw: str) -> str | list[str] | None:
    operator = _OPERATORS[variable.operator]
    if not variable.explode:
        return None if any(mark in operator.stops for mark in raw) else unquote(raw)
    if not raw:
        return []
    separator = operator.separator
    if raw[0] != separator or any(mark in operator.stops and mark != separator for mark in raw):
        return None
    values = []
    for segment in raw.split(separator)[1:]:
        if operator.is_named:
            name, _, segment = segment.partition("=")
            if name != variable.name:
                return None
        values.append(unquote(segment))
    return values


def _query_values(query: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        # Expansion never escapes names, so an escaped name is another name. The first of several values counts.
        if name:
            values.setdefault(name, unquote(value))
    return values


# Expanding -----------------------------------------------------------------------------------------------------------


def _expand_variable(expression: _Expression, values: Mapping[str, str | Sequence[str]]) -> str:
    operator = _OPERATORS[expression.operator]
    written: list[str] = []
    for variable in expression.variables:
        value = values.get(variable.name)
        if value is None:
            continue
        items = [_escape_value(item, operator) for item in ((value,) if isinstance(value, str) else value)]
        if not items:
            continue
        if not variable.explode:
            items = [",".join(items)]
        if operator.is_named:
            items = [f"{variable.name}={item}" if item else variable.name + operator.empty for item in items]
        written.extend(items)
    return operator.first + operator.separator.join(written) if written else ""


def _escape_value(value: str, operator: Operator) -> str:
    if not operator.keeps_reserved:
        return quote(value, safe="")
    # Existing escapes stay.
    pieces, at = [], 0
    for escape in _ESCAPE.finditer(value):
        pieces += [quote(value[at : escape.start()], safe=_RESERVED), escape.group()]
        at = escape.end()
    return "".join([*pieces, quote(value[at:], safe=_RESERVED)])
