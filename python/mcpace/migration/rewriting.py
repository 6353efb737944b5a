"""One file's imports, rewritten."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpace.migration.counterparts import COUNTERPARTS, ENGINES, PACKAGES, SERVERS, WHOLE, advice, find_counterpart

SPACE = r"(?:[ \t\f]|\\\r?\n)"
FROM = re.compile(rf"from{SPACE}+((?:\w|\.)+){SPACE}+import\b".encode())
COMMENT = re.compile(rb"#[^\r\n]*")
LINE_END = re.compile(rb"\r\n|\r|\n")
MODULES = {
    ".".join(module.split(".")[: length + 1])
    for module in {*WHOLE, *(module for module, _ in COUNTERPARTS)}
    for length in range(module.count(".") + 1)
}


class Unreadable(Exception):
    """The file is not Python that this interpreter can parse; the message says where."""


@dataclass(frozen=True, slots=True)
class Left:
    """An import, or the use of one, that has no counterpart."""

    line: int
    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file's bytes afterwards."""

    data: bytes
    imports: int
    """Statements that were rewritten."""
    left: tuple[Left, ...]


def rewrite(data: bytes, own_packages: frozenset[str] = frozenset()) -> Rewritten:
    """Rewrites the imports that have a counterpart; `own_packages` are names that the project itself defines.

    Raises :class:`Unreadable`.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        if text.encode(encoding) != data:
            raise ValueError(f"writing it as {encoding} would change more than its imports")
        tree = ast.parse(text)
    except MemoryError as error:  # of the parser's stack; the memory is not used up
        raise Unreadable("it is nested too deeply") from error
    except (SyntaxError, LookupError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        reason = getattr(error, "msg", None) or str(error)
        raise Unreadable(f"line {line}: {reason}" if line else reason) from error
    file = _File(text.encode(), tree, frozenset(PACKAGES) - own_packages)
    file.rewrite()
    changed = file.edited().decode().encode(encoding) if file.edits else data
    return Rewritten(changed, file.imports, tuple(sorted(file.left, key=lambda left: (left.line, left.name))))


@dataclass
class _Binding:
    """A name that stands for a module of an SDK in this file."""

    path: str
    """The module's dotted name."""
    statement: ast.Import | ast.ImportFrom
    alias: ast.alias
    is_root: bool
    """Bound by ``import a.b.c`` without ``as``: the name is the first part alone."""


@dataclass(frozen=True)
class _Use:
    """An attribute of a bound name that is a name of the SDK."""

    node: ast.Attribute
    module: str
    name: str

    @property
    def target(self) -> tuple[str, str] | None:
        return find_counterpart(self.module, self.name)


@dataclass
class _File:
    data: bytes
    tree: ast.Module
    packages: frozenset[str]
    imports: int = 0
    left: list[Left] = field(default_factory=list)
    edits: list[tuple[int, int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [0, *(match.end() for match in LINE_END.finditer(self.data))]
        first = LINE_END.search(self.data)
        self.line_end = first[0] if first else b"\n"
        self.used_roots: set[int] = set()

    def rewrite(self) -> None:
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        statements = [node for node in found if self._is_of_an_sdk(node)]
        if not any(_imported_names(node) & SERVERS for node in statements) and self._left_to_the_sdk(statements):
            return
        bindings: list[_Binding] = []
        for node in statements:
            if isinstance(node, ast.Import):
                bindings += self._bound(node)
            else:
                bindings += self._rewrite_from(node)
        uses = self._uses(bindings)
        for binding in bindings:
            self._rewrite_module(binding, uses[id(binding)])

    def edited(self) -> bytes:
        data = self.data
        for start, end, text in sorted(self.edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            data = data[:start] + text + data[end:]
        return data

    def _is_of_an_sdk(self, node: ast.Import | ast.ImportFrom) -> bool:
        if isinstance(node, ast.Import):
            return any(alias.name.split(".")[0] in self.packages for alias in node.names)
        return node.level == 0 and (node.module or "").split(".")[0] in self.packages

    def _left_to_the_sdk(self, statements: list[ast.Import | ast.ImportFrom]) -> bool:
        """Whether the file's classes work with the SDK's own types alone; says so."""
        engines = [
            (node, alias)
            for node in statements
            for alias in node.names
            if (isinstance(node, ast.ImportFrom) and (node.module, alias.name) in ENGINES)
            or f"{getattr(node, 'module', '')}.{alias.name}".strip(".").startswith("mcp.server.lowlevel")
        ]
        for node, alias in engines:
            self._leave(node, getattr(node, "module", None) or alias.name, alias.name)
        return bool(engines)

    def _leave(self, node: ast.AST, module: str, name: str | None) -> None:
        shown = module if name is None or name == module else f"{module}.{name}"
        self.left.append(Left(getattr(node, "lineno", 1), shown, advice(module, None if name == module else name)))

    # from MODULE import NAME, …

    def _rewrite_from(self, node: ast.ImportFrom) -> list[_Binding]:
        """Rewrites the names that have a counterpart; returns those that are modules."""
        module = node.module or ""
        targets: dict[str | None, list[ast.alias]] = {}
        bindings = []
        for alias in node.names:
            target = find_counterpart(module, alias.name)
            if alias.name == "*":
                if module in WHOLE:
                    targets.setdefault(WHOLE[module], []).append(alias)
                    continue
                self._leave(node, module, "*")
            elif target is not None:
                targets.setdefault(target[0], []).append(alias)
                continue
            elif f"{module}.{alias.name}" in MODULES:
                bindings.append(_Binding(f"{module}.{alias.name}", node, alias, False))
            else:
                self._leave(alias, module, alias.name)
            targets.setdefault(None, []).append(alias)
        named = FROM.match(self.data, self._offset(node.lineno, node.col_offset))
        if set(targets) == {None}:
            return bindings
        if named is None:
            self._leave(node, module, None)
            return bindings
        kept, *moved = targets
        if kept is not None:
            self.edits.append((named.start(1), named.end(1), kept.encode()))
            for alias in targets[kept]:
                self._rename(module, alias)
        for place in moved:
            self._move(node, targets[place], place or module, None if place is None else module)
        self.imports += 1
        return bindings

    def _rename(self, module: str, alias: ast.alias) -> None:
        renamed = _renamed_alias(module, alias)
        if renamed != _alias_text(alias):
            self.edits.append((*self._span(alias), renamed.encode()))

    def _move(self, node: ast.ImportFrom, aliases: list[ast.alias], target: str, module: str | None) -> None:
        """Takes names out of a statement, into one of their own ahead of it."""
        comments = b""
        for alias in aliases:
            start, end = self._removed(node, alias, {id(one) for one in aliases})
            comments += b"".join(b"  " + match[0] for match in COMMENT.finditer(self.data, start, end))
            self.edits.append((start, end, b""))
        names = ", ".join(_alias_text(alias) if module is None else _renamed_alias(module, alias) for alias in aliases)
        self._insert(node, f"from {target} import {names}".encode(), comments)

    def _removed(self, node: ast.ImportFrom, alias: ast.alias, moved: set[int]) -> tuple[int, int]:
        """The part of a statement that goes with one of its names."""
        start, end = self._span(alias)
        position = node.names.index(alias)
        line_start = self.starts[alias.lineno - 1]
        after = node.names[position + 1] if position + 1 < len(node.names) else None
        before = node.names[position - 1] if position else None
        is_alone = not self.data[line_start:start].strip() and (after is None or after.lineno > alias.lineno)
        if after is None and self.data[:line_start].rstrip(b"\r\n").endswith(b"\\"):
            is_alone = False  # the backslash before it would continue the statement into the next one
        if is_alone and alias.lineno < len(self.starts) and (before is None or before.lineno < alias.lineno):
            rest = self.data[end : self.starts[alias.lineno]]
            if re.fullmatch(rb"[ \t]*,?[ \t]*(#[^\r\n]*)?(\r\n|\r|\n)", rest):
                return line_start, self.starts[alias.lineno]
        if after is not None and (before is None or any(id(one) not in moved for one in node.names[position + 1 :])):
            return start, self._span(after)[0]
        assert before is not None
        return self._span(before)[1], end

    def _insert(self, node: ast.stmt, statement: bytes, comments: bytes = b"") -> None:
        """Puts a statement ahead of another."""
        start = self._offset(node.lineno, node.col_offset)
        indent = self.data[self.starts[node.lineno - 1] : start]
        own_line = not indent.strip(b" \t\f\xef\xbb\xbf")
        follows = comments + self.line_end + indent.lstrip(b"\xef\xbb\xbf") if own_line else b"; "
        self.edits.append((start, start, statement + follows))

    # import MODULE, and `from PACKAGE import MODULE`

    def _bound(self, node: ast.Import) -> Iterator[_Binding]:
        for alias in node.names:
            if alias.name.split(".")[0] not in self.packages:
                continue
            if alias.name in MODULES or alias.name in PACKAGES:
                yield _Binding(alias.name, node, alias, alias.asname is None)
            else:
                self._leave(node, alias.name, None)

    def _uses(self, bindings: list[_Binding]) -> dict[int, list[_Use]]:
        """The attributes that are taken of each bound module."""
        uses: dict[int, list[_Use]] = {id(binding): [] for binding in bindings}
        inner: set[int] = set()
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Attribute) or id(node) in inner:
                continue
            chain: list[ast.Attribute] = [node]
            while isinstance(chain[-1].value, ast.Attribute):
                chain.append(chain[-1].value)
                inner.add(id(chain[-1]))
            root = chain[-1].value
            if not isinstance(root, ast.Name):
                continue
            chain.reverse()
            best: tuple[int, _Binding, _Use] | None = None
            for binding in bindings:
                first = _bound_name(binding.alias)
                if first != root.id:
                    continue
                use = _attribute_use(first if binding.is_root else binding.path, chain)
                if use is None or (binding.is_root and not _makes_reachable(binding.path, use.module)):
                    continue
                length = len(binding.path)
                if best is None or length > best[0]:
                    best = (length, binding, use)
            if best is not None:
                uses[id(best[1])].append(best[2])
                self.used_roots.add(id(root))
        return uses

    def _other_uses(self, binding: _Binding) -> list[tuple[ast.expr, str | None]]:
        """Uses of a bound name that are not rewritten, each with the attribute that is taken of the name.

        There are none where the file binds the name to something else as well, since a use may be of that.
        """
        name = _bound_name(binding.alias)
        attributes: dict[int, ast.Attribute] = {}
        loads: list[ast.Name] = []
        for node in ast.walk(self.tree):
            if _binds_name(node, name):
                return []
            if isinstance(node, ast.Attribute):
                attributes[id(node.value)] = node
            elif isinstance(node, ast.Name) and node.id == name and id(node) not in self.used_roots:
                loads.append(node)
        return [
            (attributes.get(id(node), node), attributes[id(node)].attr if id(node) in attributes else None)
            for node in loads
        ]

    def _rewrite_module(self, binding: _Binding, uses: list[_Use]) -> None:
        statement, alias = binding.statement, binding.alias
        unknown = [use for use in uses if use.target is None]
        for use in unknown:
            self._leave(use.node, use.module, use.name)
        targets = {use.target[0] for use in uses if use.target is not None}
        if not uses and binding.path in WHOLE:
            targets = {WHOLE[binding.path]}
        if not targets:
            if not unknown:
                self._leave(statement, binding.path, None)
            return
        name = alias.asname or alias.name
        keeps_name = not binding.is_root and len(targets) == 1 and not unknown
        others = [(node, attribute) for node, attribute in self._other_uses(binding) if attribute or not keeps_name]
        if others and not uses:
            self._leave(statement, binding.path, None)
            return
        for node, attribute in others:
            self._leave(node, binding.path.split(".")[0] if binding.is_root else binding.path, attribute)
        keeps_name = keeps_name and not others
        for use in uses:
            if use.target is None:
                continue
            module, attribute = use.target
            start, end = self._span(use.node)
            path = f"{name}.{attribute}" if keeps_name else f"{module}.{attribute}"
            if self.data[start:end] != path.encode():
                self.edits.append((start, end, path.encode()))
        self.imports += 1
        if unknown or others:
            for target in sorted(targets):
                self._insert(statement, f"import {target}".encode())
            return
        first, *more = sorted(targets)
        written = f"{first} as {name}" if keeps_name else ", ".join([first, *more])
        self._replace(statement, alias, written)

    def _replace(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias, written: str) -> None:
        if isinstance(statement, ast.Import):
            self.edits.append((*self._span(alias), written.encode()))
        elif len(statement.names) == 1:
            self.edits.append((*self._span(statement), f"import {written}".encode()))
        else:
            self.edits.append((*self._removed(statement, alias, {id(alias)}), b""))
            self._insert(statement, f"import {written}".encode())

    # Positions

    def _offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _span(self, node: ast.alias | ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)


def _bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _binds_name(node: ast.AST, name: str) -> bool:
    """Whether a node binds a name to something that is not imported."""
    match node:
        case ast.Name(id=bound, ctx=ast.Store() | ast.Del()):
            return bound == name
        case ast.arg(arg=bound):
            return bound == name
        case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
            return bound == name
        case ast.ExceptHandler(name=bound) | ast.MatchAs(name=bound) | ast.MatchStar(name=bound):
            return bound == name
        case ast.MatchMapping(rest=bound):
            return bound == name
        case _:
            return False


def _imported_names(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()


def _alias_text(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _renamed_alias(module: str, alias: ast.alias) -> str:
    """The alias with mcpace's name, bound to the name that the file uses."""
    if alias.name == "*":
        return "*"
    target = find_counterpart(module, alias.name)
    name = target[1] if target is not None else alias.name
    used = alias.asname or alias.name
    return f"{name} as {used}" if alias.asname or name != used else name


def _attribute_use(path: str, chain: list[ast.Attribute]) -> _Use | None:
    """The name of the SDK that a chain of attributes reaches, if it starts from the module at `path`."""
    module = path
    for node in chain:
        if find_counterpart(module, node.attr) or f"{module}.{node.attr}" not in MODULES:
            # A variable may have the module's name: an unknown attribute of a package is none of ours.
            is_known = find_counterpart(module, node.attr) is not None or module in WHOLE
            return _Use(node, module, node.attr) if is_known else None
        module = f"{module}.{node.attr}"
    return None


def _makes_reachable(path: str, module: str) -> bool:
    """Whether ``import path`` is what makes `module` reachable."""
    return module == path or module.startswith(f"{path}.") or path.startswith(f"{module}.")
