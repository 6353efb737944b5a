"""URI templates: expansions can be parsed again, and ambiguous templates and escaping paths are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpace.server.registration.path_security import (
    PathEscapeError,
    ResourceSecurity,
    contains_path_traversal,
    is_absolute_path,
    safe_join,
)
from mcpace.server.registration.uri_template import InvalidUriTemplate, UriTemplate


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("a://{x}", "a://1", {"x": "1"}),
        ("a://{x}", "a://", {"x": ""}),
        ("a://{x}", "a://1/2", None),
        ("a://{x}", "a://caf%C3%A9%20x", {"x": "café x"}),
        ("a://{x}", "a://1%2F2", {"x": "1/2"}),
        ("a://{x}/b/{y}.txt", "a://1/b/2.txt.txt", {"x": "1", "y": "2.txt"}),
        ("a://{x}-{y}", "a://1-2-3", {"x": "1-2", "y": "3"}),
        ("a://{+path}", "a://b/c", {"path": "b/c"}),
        ("a://{+path}", "a://b?c", None),
        ("a://{+path}/end", "a://b/c/end", {"path": "b/c"}),
        ("a://b{/parts*}", "a://b/1/2%203", {"parts": ["1", "2 3"]}),
        ("a://b{/parts*}", "a://b", {"parts": []}),
        ("a://b{;id}", "a://b;id=5", {"id": "5"}),
        ("a://b{;id}", "a://b;id", {"id": ""}),
        ("a://b{.type}", "a://b.png", {"type": "png"}),
        ("a://b{?q,page}", "a://b?page=2&other=1&q=x%20y", {"q": "x y", "page": "2"}),
        ("a://b{?q}", "a://b", {}),
        ("a://b{?q}", "a://b?q=1&q=2", {"q": "1"}),
        ("a://b{?q}", "a://b?%71=evil", {}),
        ("a://b", "a://b", {}),
        ("a://b", "a://c", None),
    ],
)
def test_matching(template: str, uri: str, values: dict[str, Any] | None) -> None:
    assert UriTemplate.parse(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("a{", "a brace doesn't close"),
        ("a}", "a brace closes that didn't open"),
        ("a{}", "'' is no variable's name"),
        ("a{x y}", "'x y' is no variable's name"),
        ("a{x}{y}", "'x' and 'y' touch"),
        ("a{x}b{x}", "'x' is there twice"),
        ("a{+x}/b/{+y}", "only one variable may span"),
        ("a{x:3}", "prefix modifier"),
        ("a{?x*}", "explode modifier"),
        ("a" * 9000, "longer than"),
    ],
)
def test_what_can_t_be_matched_is_refused(template: str, said: str) -> None:
    with pytest.raises(InvalidUriTemplate, match=said):
        UriTemplate.parse(template)


@given(
    st.sampled_from(["a://{x}/{y}", "a://{x}{/y}", "a://{x}{?y}", "a://{x};v{;y}", "a://{x}#{+y}"]),
    st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])),
    st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="?#%")),
)
def test_what_expands_reads_back(template: str, x: str, y: str) -> None:
    parsed = UriTemplate.parse(template)
    values = {"x": x, "y": y}
    assert parsed.match(parsed.expand(values)) == values


def test_a_huge_uri_is_no_match() -> None:
    assert UriTemplate.parse("a://{x}").match("a://" + "x" * 100_000) is None


@pytest.mark.parametrize("value", ["..", "../x", "a/../../b", "..\\x", "a\\..\\..\\b"])
def test_climbing_out_is_seen(value: str) -> None:
    assert contains_path_traversal(value)
    assert ResourceSecurity().validate({"p": value}) == "p"
    assert ResourceSecurity(exempt_params={"p"}).validate({"p": value}) is None


@pytest.mark.parametrize("value", ["a/b", "a/../b", "1..2", ".", "a/./b", "..."])
def test_staying_in_is_fine(value: str) -> None:
    assert not contains_path_traversal(value)


@pytest.mark.parametrize(("value", "absolute"), [("/x", True), ("\\x", True), ("C:x", True), ("x", False), ("", False)])
def test_absolute_paths_are_seen(value: str, absolute: bool) -> None:
    assert is_absolute_path(value) is absolute


def test_lists_are_looked_at_one_by_one() -> None:
    assert ResourceSecurity().validate({"a": ["x", "y\0"]}) == "a"
    assert ResourceSecurity(reject_null_bytes=False).validate({"a": ["y\0"]}) is None


def test_joining_follows_links(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    assert safe_join(tmp_path, "in", "x") == (tmp_path / "in" / "x").resolve()
    for parts in (["out", "passwd"], ["..", "x"], ["/etc"], ["a\0"]):
        with pytest.raises(PathEscapeError):
            safe_join(tmp_path, *parts)
