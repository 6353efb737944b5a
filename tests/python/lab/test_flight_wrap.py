"""The flight recorder in a host's configuration: what wrapping changes, and what unwrapping restores."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import json5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcpace
from mcpace.lab.errors import UsageProblem
from mcpace.lab.hosts.flight_wrap import SCRIPT, unwrap_text, wrap_text
from mcpace.lab.hosts.server_entries import ServerEntry, parse_entries
from support.host_configurations import HostConfiguration, host_configurations

CONFIGURATIONS = host_configurations()
WORDS = ["/bin/sh", "-c", SCRIPT, sys.executable, str(Path(mcpace.__file__).parent / "__main__.py")]


def folder_of(entry: ServerEntry) -> Path:
    return Path("/flights", f"{len(entry.path)}")


def wrap(text: str, *, toml: bool = False, chosen: frozenset[str] = frozenset()) -> str:
    return wrap_text(text, folder_of, toml, chosen).text


def unwrap(text: str, *, toml: bool = False) -> str:
    return unwrap_text(text, toml).text


def values(configuration: HostConfiguration, text: str) -> Any:
    """The values that a host reads."""
    return tomllib.loads(text) if configuration.is_toml else json_values(text)


def json_values(text: str) -> Any:
    """The values of JSON with comments. ``json5`` leaves the halves of an escaped surrogate pair apart, ``json`` joins
    them."""
    return json.loads(json.dumps(json5.loads(text.removeprefix("\ufeff"))))


def expected(value: Any, depth: int) -> Any:
    """Values after wrapping, computed on values alone."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return value
    command, arguments = value.get("command"), value.get("args", [])
    if isinstance(command, str) and isinstance(arguments, list):
        mark = "flight" if "args" in value else "flight-bare"
        recorder = [*WORDS[1:], mark, f"/flights/{depth}"]
        return {**value, "command": WORDS[0], "args": [*recorder, command, *arguments]}
    if isinstance(command, list) and command:
        return {**value, "command": [*WORDS, "flight", f"/flights/{depth}", *command]}
    return {name: expected(inner, depth + 1) for name, inner in value.items()}


def test_there_are_fifty_configurations() -> None:
    assert len({one.text for one in CONFIGURATIONS}) >= 50


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda one: one.name)
def test_unwrapping_gives_the_same_bytes(configuration: HostConfiguration) -> None:
    change = wrap_text(configuration.text, folder_of, configuration.is_toml)
    assert (change.text != configuration.text) == bool(change.changed)
    assert unwrap(change.text, toml=configuration.is_toml) == configuration.text
    assert wrap(change.text, toml=configuration.is_toml) == change.text


NOT_COMPARED = {"odd-values.json", "zed.json", "inline.toml"}
"""Some of their servers can't be wrapped."""


@pytest.mark.parametrize(
    "configuration", [one for one in CONFIGURATIONS if one.name not in NOT_COMPARED], ids=lambda one: one.name
)
def test_only_commands_change(configuration: HostConfiguration) -> None:
    wrapped = wrap(configuration.text, toml=configuration.is_toml)
    assert values(configuration, wrapped) == expected(values(configuration, configuration.text), 0)


def test_servers_that_cannot_be_wrapped_are_named_with_the_reason() -> None:
    by_name = {one.name: one for one in CONFIGURATIONS}
    left = dict(wrap_text(by_name["odd-values.json"].text, folder_of, False).left)
    assert left == {
        "null args": "its args are no array",
        "text args": "its args are no array",
        "number": "its command is no text",
        "empty command": "its command is empty",
        "twice": "server 'twice' has command twice",
    }
    change = wrap_text(by_name["inline.toml"].text, folder_of, True)
    assert ([path[-1] for path in change.changed], dict(change.left)) == (
        ["a", "b"],
        {"c": "its command has a dotted name within braces"},
    )


LINE = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=12)
SPACE = st.sampled_from(["", " ", "\n  ", "\r\n\t", ' // note "x" , ] }\n', "/* , [ */"])


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """A configuration with spaces and comments between all tokens."""

    def spaced(*tokens: str) -> str:
        return "".join(draw(SPACE) + token for token in tokens) + draw(SPACE)

    def text(value: str) -> str:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def listed(opening: str, closing: str, items: list[str]) -> str:
        trailing = "," if items and draw(st.booleans()) else ""
        return opening + ",".join(items) + trailing + closing

    def member(name: str, value: str) -> str:
        return spaced(text(name), ":", value)

    def entry() -> str:
        members = [member("command", text(draw(LINE)))]
        if draw(st.booleans()):
            words = [spaced(text(draw(LINE))) for _ in range(draw(st.integers(0, 3)))]
            members.append(member("args", spaced(listed("[", "]", words))))
        others = draw(st.lists(st.sampled_from(["env", "type", "disabled"]), unique=True))
        values = st.sampled_from(["{}", "null", "true", '"stdio"', "[1,]"])
        members.extend(member(name, spaced(draw(values))) for name in others)
        return spaced(listed("{", "}", draw(st.permutations(members))))

    names = draw(st.lists(LINE, min_size=1, max_size=3, unique=True))
    servers = listed("{", "}", [member(name, entry()) for name in names])
    return spaced(listed("{", "}", [member("mcpServers", servers), member("other", spaced("1"))]))


@settings(deadline=None)
@given(json_texts())
def test_any_layout_of_json_is_restored(text: str) -> None:
    change = wrap_text(text, folder_of, False)
    assert change.changed
    assert unwrap(change.text) == text
    assert wrap(change.text) == change.text


@settings(deadline=None)
@given(json_texts(), st.sampled_from([2, 4, "\t", None]), st.booleans())
def test_a_host_may_write_a_wrapped_configuration_anew(text: str, indent: Any, is_sorted: bool) -> None:
    rewritten = json.dumps(json_values(wrap(text)), indent=indent, sort_keys=is_sorted)
    assert json.loads(unwrap(rewritten)) == json_values(text)


BEFORE = """\
{
  // mine
  "mcpServers": {
    "a": {"command": "npx", "args": ["-y", "a"]},
    "b": {"command": "b"}
  }
}
"""


def test_an_edit_after_wrapping_survives() -> None:
    def edit(text: str) -> str:
        text = text.replace('"-y", "a"]', '"-y", "a", "--new"], "env": {"K": "v"}').replace("// mine", "// yours")
        return text.replace('"b"}\n', '"b"},\n    "c": {"url": "https://example.com"}\n')

    # The last word of b's wrapped command line is not followed by the end of its entry.
    wrapped = wrap(BEFORE)
    edited = wrapped.replace('"-y", "a"]', '"-y", "a", "--new"], "env": {"K": "v"}').replace("// mine", "// yours")
    edited = edited.replace("\n  }\n}", ',\n    "c": {"url": "https://example.com"}\n  }\n}')
    assert edited.count("--new") == edited.count("yours") == edited.count('"c"') == 1
    assert unwrap(edited) == edit(BEFORE)


def test_a_command_line_that_was_emptied_is_reported_and_left() -> None:
    wrapped = wrap('{"mcpServers": {"a": {"command": "npx", "args": []}}}')
    broken = wrapped.replace(', "npx"]', "]")
    assert broken != wrapped
    change = unwrap_text(broken, False)
    assert change.text == broken
    assert change.left == [("a", "it is wrapped, and its own command is gone from its args")]


def test_a_bare_server_that_got_arguments_meanwhile_keeps_them() -> None:
    wrapped = wrap('{"mcpServers": {"a": {"command": "npx"}}}')
    edited = wrapped.replace('"npx"]', '"npx", "-y", "a"]')
    assert edited != wrapped
    assert json.loads(unwrap(edited)) == {"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"]}}}


def test_one_server_of_several_is_wrapped_and_restored() -> None:
    wrapped = wrap(BEFORE, chosen=frozenset({"b"}))
    assert '"command": "npx", "args": ["-y", "a"]' in wrapped
    assert "flight-bare" in wrapped
    assert unwrap_text(wrapped, False, frozenset({"a"})).text == wrapped
    assert unwrap_text(wrapped, False, frozenset({"b"})).text == BEFORE


def test_a_wrapped_server_is_wrapped_anew_by_another_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = wrap(BEFORE)
    monkeypatch.setattr(sys, "executable", "/opt/new/bin/python")
    again = wrap(wrapped)
    assert "/opt/new/bin/python" in again
    assert WORDS[3] not in again
    assert unwrap(again) == BEFORE


def test_a_path_that_a_host_would_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/${env:HOME}/python")
    change = wrap_text(BEFORE, folder_of, False)
    assert change.text == BEFORE
    assert [name for name, _ in change.left] == ["a", "b"]


@pytest.mark.parametrize("text", ["", "{", "[" * 10_000, '{"mcpServers": {"a": {command: 1}}}', "{} {}"])
def test_text_that_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="is not JSON"):
        parse_entries(text, False)
    with pytest.raises(UsageProblem, match="is not TOML"):
        parse_entries(text + "{", True)
