"""Options that are repeated, from ``mcpace.toml`` or ``[tool.mcpace]`` in ``pyproject.toml``. Each command has a table.

Design constraint: The current folder may be a stranger's checkout. A file therefore sets only how much is measured and
how the result is judged (:data:`OPTIONS`), and a line on stderr names the file. Deliberately absent are options that
name a program, a target, a tool or its arguments, a header, a token or a certificate, an address to listen on or to
send to, and a file to read or write. ``--quiet`` is absent, so that a file can't hide its own use.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import typer

from mcpace.cli.notes import note
from mcpace.system.files import open_file

OWN, SHARED = "mcpace.toml", "pyproject.toml"
TABLE = "mcpace"
MOST_BYTES = 1024 * 1024
OPTIONS = frozenset(
    {
        "accept",
        "access-log",
        "arrivals",
        "batch",
        "body-limit",
        "budget",
        "calls",
        "cores",
        "cpus",
        "duration",
        "fail-on",
        "fault",
        "graceful-timeout",
        "hold",
        "json-response",
        "log-level",
        "max-calls",
        "max-in-flight",
        "max-result-tokens",
        "memory",
        "open",
        "port",
        "rate",
        "response",
        "revision",
        "rounds",
        "seed",
        "server-timing",
        "session",
        "stages",
        "state",
        "stateless",
        "think",
        "threads",
        "threshold",
        "timeout",
        "tls",
        "tokens",
        "tolerance",
        "trials",
        "vus",
        "warm-up",
        "workers",
        "workload",
    }
)
"""Options that a file may set."""
REPLACED = {
    "vus": {"rate", "arrivals", "max-in-flight"},
    "rate": {"vus", "think"},
    "duration": {"stages"},
    "stages": {"duration"},
    "scenario": OPTIONS,
}
"""For an option of the command line, the options of the file that contradict it and are left out. A scenario is a file
with options, which the user named."""


def load_defaults(ctx: Any, command: Any, words: list[str], commands: Collection[str]) -> dict[str, Any]:
    """The values of the nearest file for options of ``command`` that the command line does not give, by parameter.

    ``ctx``: the context of the command, before its options are parsed. ``words``: the command line after the command's
    name. ``commands``: the names of all commands. Raises :class:`UsageProblem` where a file can't be read, and for an
    unknown key or a value of a wrong type, with the file and the key.
    """
    try:
        found = find_settings(Path.cwd())
    except FileNotFoundError:  # the current folder was removed
        return {}
    if found is None:
        return {}
    path, tables = found
    known = {option: param for param in command.params for option in _names(param)}
    _check_tables(path, tables, commands)
    values = _checked_values(path, tables.get(ctx.info_name, {}), known, ctx)
    given, _, _ = command.make_parser(ctx).parse_args(args=list(words))
    for option in [option for option, param in known.items() if param.name in given]:
        for name in {option, *REPLACED.get(option, ())}:
            values.pop(name, None)
    if values and not given.get("quiet"):
        note(f"options from {path}: {', '.join(values)}")
    return {known[option].name: value for option, value in values.items()}


def find_settings(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """Finds the nearest file with settings, in ``folder`` or in a parent up to the root of its repository.

    Outside of a repository, only ``folder`` is searched. Returns the file and its tables by command.
    """
    for place in _search_folders(folder):
        own = _read_tables(place / OWN)
        shared = _read_tables(place / SHARED)
        if own is not None and shared is not None:
            _refuse(place / SHARED, "tool.mcpace", f"{OWN} beside it has settings too: keep one of the two")
        if own is not None:
            return place / OWN, own
        if shared is not None:
            return place / SHARED, shared
    return None


def _search_folders(folder: Path) -> list[Path]:
    folders = [folder, *folder.parents]
    root = next((number for number, place in enumerate(folders) if (place / ".git").exists()), 0)
    return folders[: root + 1]


def _read_tables(path: Path) -> dict[str, Any] | None:
    """The tables of one file; ``None`` where there is no file, or a ``pyproject.toml`` without settings."""
    data = _read_regular_file(path)
    # A pyproject.toml that never names mcpace isn't parsed: it may be invalid, and is no matter of ours.
    if data is None or (path.name == SHARED and TABLE.encode() not in data):
        return None
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        _refuse(path, "", f"the file is not TOML: {error}")
    if path.name == OWN:
        return document
    tables = document.get("tool", {})
    tables = tables.get(TABLE) if isinstance(tables, dict) else None
    if tables is not None and not isinstance(tables, dict):
        _refuse(path, "tool.mcpace", "it must be a table")
    return tables


def _read_regular_file(path: Path) -> bytes | None:
    """The content of a file; ``None`` where there is none. A pipe or a device is refused, because it may never end."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                _refuse(path, "", "it is not a regular file")
            data = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        _refuse(path, "", f"it cannot be read: {error.strerror}")
    if len(data) > MOST_BYTES:
        _refuse(path, "", f"it has more than {MOST_BYTES:,} bytes")
    return data


def _open_without_waiting(path: str, flags: int) -> int:
    """Opens a file. Opening a pipe would otherwise wait for its writer."""
    return open_file(path, flags, follow_links=True)


def _check_tables(path: Path, tables: dict[str, Any], commands: Collection[str]) -> None:
    """Raises :class:`UsageProblem` for a table of no command. The options in a table are checked when it is used."""
    for table, values in tables.items():
        if table not in commands:
            _refuse(path, table, f"there is no such command{_suggestion(table, commands)}")
        if not isinstance(values, dict):
            _refuse(path, table, "it must be a table with the options of this command")


def _checked_values(path: Path, table: dict[str, Any], known: dict[str, Any], ctx: Any) -> dict[str, Any]:
    """The values of a command's table, by option."""
    settable = [option for option, param in known.items() if is_settable(param)]
    checked = {}
    for option, value in table.items():
        key = f"{ctx.info_name}.{option}"
        if option in known and option not in settable:
            _refuse(path, key, "this option is taken from the command line only")
        if option not in known:
            _refuse(path, key, f"there is no such option{_suggestion(option, settable)}")
        checked[option] = _checked_value(path, key, value, known[option], ctx)
    return checked


def is_settable(param: Any) -> bool:
    """Whether a file may set an option. The command line must be able to overrule it, also where it is a flag."""
    if param.multiple and "workers" in _names(param):
        return False  # they are machines
    return bool(OPTIONS & set(_names(param))) and (not param.is_flag or bool(param.secondary_opts))


def _checked_value(path: Path, key: str, value: Any, param: Any, ctx: Any) -> Any:
    """``value`` as the option takes it: as on the command line, but for flags and lists."""
    wanted, types = _toml_types(param)
    values = value if param.multiple and isinstance(value, list) else [value]
    if param.multiple != isinstance(value, list) or any(type(one) not in types for one in values):
        _refuse(path, key, f"it must be {wanted}, not {_toml_name(value)}")
    converted = value if param.is_flag else [str(one) for one in values] if param.multiple else str(value)
    try:
        param.process_value(ctx, converted)
    except typer.BadParameter as error:
        _refuse(path, key, error.message)
    return converted


def _toml_types(param: Any) -> tuple[str, tuple[type, ...]]:
    """The values that an option takes, in words and as types."""
    if param.multiple:
        return "a list of strings", (str,)
    if param.is_flag:
        return "true or false", (bool,)
    if param.type_descriptor.parameter_info.parser is not None:  # a time or a share, with its unit
        return "a string or a number", (str, int, float)
    if param.type_descriptor.annotation is int:
        return "a whole number", (int,)
    if param.type_descriptor.annotation is float:
        return "a number", (int, float)
    return "a string", (str,)


def _toml_name(value: Any) -> str:
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "a date or a time")


def _names(param: Any) -> list[str]:
    return [word.removeprefix("--") for word in param.opts if word.startswith("--")]


def _suggestion(name: str, known: Collection[str]) -> str:
    from mcpace.lab.errors import nearest_names, suggestion

    return suggestion(nearest_names(name, known), sorted(known))


def _refuse(path: Path, key: str, reason: str) -> NoReturn:
    # Imported late: `serve` loads nothing of the lab where nothing is wrong.
    from mcpace.lab.errors import UsageProblem

    raise UsageProblem(f"{path}: {f'{key}: ' if key else ''}{reason}")
