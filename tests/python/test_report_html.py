"""The page: well-formed, offline, escaped, small."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mcpace.report.html import render
from mcpace.report.run import Ledger, Run, Summary
from mcpace.report.verdict import verdict

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
NAMES = sorted(path.stem for path in RUNS.glob("*.json"))
LARGEST = 600_000
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Page(HTMLParser):
    """Collects elements, and fails where they don't nest."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data)


def load(name: str) -> Run:
    return Run.load(RUNS / f"{name}.json")


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("name", NAMES)
def test_elements_nest_and_ids_are_unique(name: str) -> None:
    page = parsed(render(load(name)))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert {str(link).removeprefix("#") for link in links if link != "#findings"} <= set(ids)


@pytest.mark.parametrize("name", NAMES)
def test_asks_the_network_for_nothing(name: str) -> None:
    page = parsed(render(load(name)))
    for tag, attributes in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio", "image", "use"}
        assert "src" not in attributes
        assert str(attributes.get("href", "#")).startswith("#")
        assert "style" not in attributes, "the page's policy forbids inline styles"
        assert not [name for name in attributes if name.startswith("on")]
    style = re.search(r"<style>(.*?)</style>", render(load(name)), re.S)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_policy_names_exactly_the_script_and_style_in_the_page() -> None:
    text = render(load("clients"))
    policy = next(str(a["content"]) for t, a in parsed(text).elements if t == "meta" and a.get("http-equiv"))
    for element in ("script", "style"):
        found = re.findall(rf"<{element}>(.*?)</{element}>", text, re.S)
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_peers_text_stays_text() -> None:
    page = parsed(render(load("hostile")))
    assert "<script>alert(1)</script>" in "".join(page.text), "the fixture's attack is no longer shown at all"
    assert "{{7*7}}" in "".join(page.text)
    assert len(page.scripts) == 1
    assert "alert" not in page.scripts[0]
    clean = {tag for tag, _ in parsed(render(load("clients"))).elements}
    clean |= {tag for name in NAMES if name != "hostile" for tag, _ in parsed(render(load(name))).elements}
    assert {tag for tag, _ in page.elements} <= clean


def test_peers_cannot_choose_classes_or_ids() -> None:
    page = parsed(render(load("hostile")))
    for _, attributes in page.elements:
        for name in ("class", "id", "for", "name", "value"):
            assert "alert" not in str(attributes.get(name, ""))


def test_no_control_characters() -> None:
    text = render(load("hostile"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b]", text)


@pytest.mark.parametrize("name", NAMES)
def test_is_small(name: str) -> None:
    assert len(render(load(name)).encode()) <= LARGEST


def test_stays_small_when_a_client_is_chatty() -> None:
    run = load("clients")
    for case in run.cases:
        if case.waterfall:
            case.waterfall.exchanges *= 30
    assert len(render(run).encode()) <= LARGEST


@pytest.mark.parametrize("name", NAMES)
def test_says_the_verdict_first(name: str) -> None:
    text = render(load(name))
    heading = re.search(r"<h1>(.*?)</h1>", text, re.S)
    assert heading
    page = Page()
    page.feed(heading[0])
    assert "".join(page.text) == verdict(load(name))


def test_an_interrupted_run_says_so() -> None:
    assert "Interrupted:" in render(load("partial"))
    assert "Interrupted:" not in render(load("clients"))


def test_the_costliest_call_is_shown_first_beside_the_good_one() -> None:
    text = "".join(parsed(render(load("clients"))).text)
    assert "call at profile:notion: python@1.12.1 beside python@1.14.0" in text
    first = re.search(r'<div class="panel" id="call-0">(.*?)</figure>', render(load("clients")), re.S)
    assert first
    assert "python@1.12.1, call" in first[1]
    assert "sent again, as row 1" in first[1]


def test_every_picture_says_in_words_what_it_shows() -> None:
    for tag, attributes in parsed(render(load("clients"))).elements:
        if tag == "svg" and attributes.get("aria-hidden") != "true":
            assert attributes["aria-label"]
            assert attributes["role"] == "img"


def test_stays_small_with_very_many_trials() -> None:
    run = load("clients")
    for case in run.cases:
        case.trials_s *= 400
    text = render(run)
    assert len(text.encode()) <= LARGEST
    assert "one dot for every 50 trials" in text


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-12, 1e9])
def test_odd_figures_are_drawn(value: float) -> None:
    run = load("clients")
    for case in run.cases:
        case.trials_s = [value] * len(case.trials_s)
        case.summary = Summary.of(case.trials_s)
        if case.ledger_s:
            case.ledger_s = Ledger.model_validate(dict.fromkeys(case.ledger_s.parts(), value))
        if case.waterfall:
            case.waterfall.total_ms = value
    parsed(render(run))


def test_an_empty_run_renders() -> None:
    run = load("measure")
    run.cases = []
    assert "Nothing was measured." in render(run)
