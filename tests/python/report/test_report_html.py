"""The page as a file: offline, escaped, small, with a policy that allows only its own script and style."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mcpace.report.model.comparison import Attempt, Comparison
from mcpace.report.model.run import Ledger, Phase, Run, Summary
from mcpace.report.page import html
from mcpace.report.page.build import page_of
from mcpace.report.page.html import render, shell
from mcpace.report.page.load import distribution
from mcpace.report.page.setup import method
from mcpace.report.verdict import verdict

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
NAMES = sorted(path.stem for path in RUNS.glob("*.json"))
SOURCES = Path(__file__).parents[3] / "web" / "src"
LARGEST = 600_000
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Document(HTMLParser):
    """Collects elements, and fails where they are not nested correctly."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def load(name: str) -> Run:
    return Run.load(RUNS / f"{name}.json")


def parsed(text: str) -> Document:
    document = Document()
    document.feed(text)
    document.close()
    assert document.open == []
    return document


def data(text: str) -> dict[str, Any]:
    """The data that the page contains for its script."""
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    told: dict[str, Any] = json.loads(block)
    return told


@pytest.mark.parametrize("name", NAMES)
def test_it_is_one_document_that_asks_the_network_for_nothing(name: str) -> None:
    text = render(load(name))
    document = parsed(text)
    kinds = [tag for tag, _ in document.elements]
    assert kinds.count("script") == 2
    assert kinds.count("style") == 1
    for tag, attributes in document.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio", "image", "use"}
        assert not {"src", "href", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    style = "".join(document.texts["style"])
    assert "url(" not in style
    assert "@import" not in style


def test_policy_names_exactly_the_script_and_style_in_the_page() -> None:
    for text, asks in ((render(load("clients")), False), (shell(), True)):
        policy = next(str(a["content"]) for t, a in parsed(text).elements if a.get("http-equiv"))
        for element in ("script", "style"):
            [found] = re.findall(rf"<{element}>(.*?)</{element}>", text, re.S)
            digest = base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()
            assert f"{element}-src 'sha256-{digest}'" in policy
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert ("connect-src 'self'" in policy) == asks


def test_the_script_makes_no_markup_of_text() -> None:
    """No substitute for the tests in a browser, but it names the line of an error."""
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextual|\beval\b"
    )
    sources = list(SOURCES.glob("*.ts"))
    assert sources
    for source in sources:
        for number, line in enumerate(source.read_text().splitlines(), 1):
            assert not forbidden.search(line), f"{source.name}:{number}"


def test_peers_text_stays_data() -> None:
    text = render(load("hostile"))
    document = parsed(text)
    assert "<script>alert(1)</script>" in json.dumps(data(text)), "the fixture's attack is no longer shown at all"
    assert "<script>alert" not in text
    [still] = re.findall(r'<div id="app">(.*?)</div>', text, re.S)
    assert "&lt;script&gt;alert(1)" in still
    assert {tag for tag, _ in document.elements} <= {tag for tag, _ in parsed(render(load("clients"))).elements}


def test_data_cannot_end_its_element_or_begin_another() -> None:
    for text in ("</script>", "<!--", "<script", "]]>", "&lt;", "\u2028"):
        run = load("measure")
        run.machine.cpu = f"x{text}y"
        page = render(run)
        block = page[page.index('id="data">') + 10 :].partition("</script>")[0]
        assert not set("<>&\u2028") & set(block)
        shown = json.loads(block)["page"]["head"]["machine"]
        assert text.replace("\u2028", " ").strip() in shown


def test_no_control_characters() -> None:
    told = json.dumps(data(render(load("hostile"))), ensure_ascii=False)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b]", told)


@pytest.mark.parametrize("name", NAMES)
def test_is_small(name: str) -> None:
    assert len(render(load(name)).encode()) <= LARGEST


def test_stays_small_when_a_client_is_chatty() -> None:
    run = load("clients")
    for case in run.cases:
        if case.waterfall:
            case.waterfall.exchanges *= 40
    assert len(render(run).encode()) <= LARGEST
    page = page_of(run)
    call = page.cases[page.pairs[0]].call
    assert call
    assert (len(call.exchanges), call.left_out) == (60, 20)


def test_stays_small_with_very_many_trials() -> None:
    run = load("clients")
    for case in run.cases:
        case.trials_s *= 400
    assert len(render(run).encode()) <= LARGEST
    shown = page_of(run).cases[0]
    assert shown.trials == 2000
    assert len(shown.trials_s) <= 500
    assert shown.trials_s[0] == run.cases[0].trials_s[0], "the cold one is left out"


@pytest.mark.parametrize("name", NAMES)
def test_says_the_verdict_without_its_script(name: str) -> None:
    [still] = re.findall(r'<div id="app">(.*?)</div>', render(load(name)), re.S)
    document = parsed(still)
    said = [*document.texts["h1"], *document.texts.get("p", [])[:-1]]
    assert " ".join(said) == verdict(load(name))


def test_an_interrupted_run_says_so() -> None:
    assert page_of(load("partial")).head.partial
    assert not page_of(load("clients")).head.partial


def test_the_costliest_call_is_shown_first_beside_the_good_one() -> None:
    page = page_of(load("clients"))
    first = page.cases[page.pairs[0]]
    assert (first.subject, first.operation, first.target) == ("python@1.12.1", "call", "profile:notion")
    assert first.better is not None
    assert page.cases[first.better].subject == "python@1.14.0"
    assert first.call
    assert first.call.exchanges[1].repeats == 1
    assert [pin.words for pin in first.call.pins][:2] == ["request sent", "its result complete"]
    [wait] = first.call.waits
    assert wait.kind == "open"
    assert wait.to_ms - wait.from_ms == pytest.approx(2000, rel=0.01)


def test_evidence_of_another_trial_is_said_to_be_that() -> None:
    run = load("clients")
    case = next(case for case in run.cases if case.findings and case.waterfall and case.findings[0].evidence)
    assert case.waterfall
    shown = run.cases.index(case)
    for trial, said in ((case.waterfall.trial, ""), (case.waterfall.trial + 1, "trial"), (None, "the first call")):
        case.findings[0].trial = trial
        del case.findings[1:]
        call = page_of(run).cases[shown].call
        assert call
        assert said in call.pins_of
        assert bool(call.pins_of) == bool(said)


def test_evidence_outside_every_call_is_marked_in_none() -> None:
    run = load("clients")
    case = next(case for case in run.cases if case.waterfall and any(one.evidence for one in case.findings))
    [inside] = [one for one in case.findings if one.evidence][:1]
    assert case.waterfall
    inside.trial = case.waterfall.trial
    case.findings = [inside, inside.model_copy(update={"trial": None})]
    page = page_of(run)
    call = page.cases[run.cases.index(case)].call
    assert call
    assert len(call.pins) == len(inside.evidence)
    case.findings = [inside.model_copy(update={"trial": None, "calls": 0})]
    call = page_of(run).cases[run.cases.index(case)].call
    assert call
    assert call.pins == []


def test_the_servers_own_stream_is_no_wait_of_a_call() -> None:
    run = load("measure")
    case = next(case for case in run.cases if case.operation == "call" and case.waterfall)
    assert case.waterfall
    before = page_of(run).cases[run.cases.index(case)].call
    total_ms = case.waterfall.total_ms
    stream = case.waterfall.exchanges[0].model_copy(
        update={
            "label": "GET /mcp",
            "phases": [Phase(phase="server", from_ms=-5.0, to_ms=total_ms + 900)],
            "exchange": 99,
        }
    )
    case.waterfall.exchanges.insert(0, stream)
    call = page_of(run).cases[run.cases.index(case)].call
    assert call and before
    assert [one[0] for one in call.exchanges[0].phases] == ["listening"]
    assert call.waits == before.waits
    # One within the call is waited for: the client fetches metadata, say.
    stream.phases = [Phase(phase="server", from_ms=0.0, to_ms=total_ms)]
    call = page_of(run).cases[run.cases.index(case)].call
    assert call
    assert [one[0] for one in call.exchanges[0].phases] == ["server"]
    assert call.waits == []


def test_a_distribution_keeps_every_call_in_its_place() -> None:
    found = distribution([(1_000_000, 3), (1_010_000, 4), (100_000_000, 5)])
    assert found
    assert sum(found.counts) == 12
    edges = [10 ** ((found.first + index) / found.per_decade) for index in range(len(found.counts) + 1)]
    for index, count in enumerate(found.counts):
        if count:
            inside = [n for n, upper in ((3, 1e-3), (4, 1.01e-3), (5, 0.1)) if edges[index] < upper <= edges[index + 1]]
            assert sum(inside) == count
    assert distribution([]) is None


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-12, 1e9])
def test_odd_figures_are_handed_on(value: float) -> None:
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


def test_a_checkout_that_was_not_built_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    html._asset.cache_clear()
    monkeypatch.setattr(html, "SCRIPT", "none.js")
    with pytest.raises(html.NotBuilt, match="make build"):
        render(load("measure"))


def comparison(*, interleaved: bool, warnings: list[str]) -> Comparison:
    return Comparison(interleaved=interleaved, warnings=warnings, tolerance=0.1, attempts=[Attempt()])


@pytest.mark.parametrize(
    ("kind", "compared", "said", "unsaid"),
    [
        ("clients", None, "with the real client", "own client"),
        ("measure", None, "mcpace's own client;", "A recorder between"),
        ("gate", comparison(interleaved=True, warnings=[]), "the two sides taking turns", "A recorder between"),
        ("gate", comparison(interleaved=False, warnings=[]), "mcpace's own client;", "taking turns"),
        ("gate", comparison(interleaved=False, warnings=["measured-once"]), "two saved runs", "was run several times"),
        ("compare", comparison(interleaved=False, warnings=[]), "two saved runs", "was run several times"),
        ("explain", None, "in short slices", "was run several times"),
        ("recording", None, "read from a file", "was run several times"),
    ],
)
def test_the_method_is_that_of_the_command(kind: Any, compared: Comparison | None, said: str, unsaid: str) -> None:
    run = load("measure")
    run.kind, run.comparison = kind, compared
    told = " ".join(fact.value for fact in method(run))
    assert said in told
    assert unsaid not in told


def test_dependencies_of_another_time_are_said_and_are_no_package() -> None:
    run = load("clients")
    label, other = list(run.versions)[:2]
    run.dependencies_as_of = {label: "2026-11-20"}
    shown = {packages.label: packages.packages for packages in page_of(run).packages}
    assert f"{label}, its dependencies of 2026-11-20 instead of its own time" in shown
    assert other in shown
    assert not any("2026-11-20" in package for held in shown.values() for package in held)
