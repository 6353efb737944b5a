"""The page in a real browser: complete, in both themes, narrow and printed; hostile runs execute nothing in it."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from mcpace.lab.compare import comparison
from mcpace.report.model.run import Run
from mcpace.report.page.html import render
from mcpace.report.verdict import sentences
from mcpace.report.words.quantities import duration, figure, share, size, times
from support.browser import Watched, chromium
from support.servers_run import RUN as SERVERS

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "tests" / "fixtures" / "runs"
NAMES = sorted(path.stem for path in RUNS.glob("*.json"))
SECTIONS = {
    "clients": ["findings", "trials", "calls", "ledger", "setup", "method"],
    "bisect": ["findings", "search", "trials", "calls", "ledger", "setup", "method"],
    "measure": ["trials", "calls", "ledger", "setup", "method"],
    "load": ["load", "course", "distribution", "operations", "setup", "method"],
}


def load(name: str) -> Run:
    return Run.load(RUNS / f"{name}.json")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def write(tmp_path: Path) -> Iterator[object]:
    def written(run: Run) -> str:
        place = tmp_path / "report.html"
        place.write_text(render(run), encoding="utf-8")
        return place.as_uri()

    yield written


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_run_is_drawn_without_a_word_of_trouble(name: str, browser: Browser, write) -> None:
    run = load(name)
    with Watched(browser) as watched:
        page = watched.open(write(run))
        assert page.locator("h1").inner_text().split() == sentences(run)[0].split()
        found = page.eval_on_selector_all("section[id]", "all => all.map(one => one.id)")
        if name in SECTIONS:
            assert found == SECTIONS[name]
        assert watched.troubles == []
        assert [url for url in watched.asked if not url.startswith("file:")] == []
        assert len(watched.asked) == 1
        repeated = page.evaluate("() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
                                 " return ids.filter((id, at) => ids.indexOf(id) !== at); }")  # fmt: skip
        assert repeated == []


def test_servers_layers_and_comparisons_are_drawn(browser: Browser, write) -> None:
    compared = load("clients")
    compared.kind = "compare"
    compared.comparison = comparison.compare_runs(load("clients"), load("partial"), 0.05)
    compared.cases = load("partial").cases
    for run, sections in ((SERVERS, {"servers", "tools", "ran"}), (compared, {"compared", "both"})):
        with Watched(browser) as watched:
            page = watched.open(write(run))
            assert sections <= set(page.eval_on_selector_all("section[id]", "all => all.map(one => one.id)"))
            assert watched.troubles == []
            if run is compared:
                rows = len(compared.comparison.attempts[-1].rows)
                assert page.locator("table.ratios tbody tr").count() == rows
                expect(page.locator("table.ratios svg.interval").first).to_be_visible()


def held_against_itself(operations: int) -> Run:
    """A number of figures of one place, each with its trials."""
    run = load("measure")
    call = next(case for case in run.cases if case.operation == "call")
    run.cases = [call.model_copy(update={"tool": f"tool-{number}", "findings": []}) for number in range(operations)]
    return comparison.run_of(run, run, 0.05, ("first.json", "second.json"))


@pytest.mark.parametrize("operations", [4, 11])
def test_a_comparison_fits_into_its_page(operations: int, browser: Browser, write) -> None:
    made = held_against_itself(operations)
    with Watched(browser) as watched:
        page = watched.open(write(made))
        assert page.locator("#both .panel").count() == operations
        # Drawn already, beside the first side's; what isn't is said to be the second's.
        assert page.locator("#trials").count() == 0
        expect(page.locator("#ledger h2 small")).to_have_text("of the second side")
        for width in (1280, 900, 400):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            # The ratios must be visible first.
            ratio = page.locator("#compared td.ratio").first.bounding_box()
            assert ratio and ratio["x"] + ratio["width"] <= width
        ratios = page.locator("#compared .wide")
        assert ratios.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_a_hostile_run_does_nothing(browser: Browser, write) -> None:
    with Watched(browser) as watched:
        page = watched.open(write(load("hostile")))
        for details in page.locator("details").all():
            details.evaluate("one => one.open = true")
        for option in page.locator("#calls select").first.locator("option").all():
            page.locator("#calls select").first.select_option(option.get_attribute("value"))
        page.keyboard.press("Tab")
        text = page.locator("main").inner_text()
        assert "<script>alert(1)</script>" in text
        assert "{{7*7}}" in text
        assert page.locator("script").count() == 2
        assert page.locator("main :is(script, img, iframe, object, embed, link, style, base)").count() == 0
        handlers = page.evaluate("() => [...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                                 ".filter(name => name.startsWith('on'))")  # fmt: skip
        assert handlers == []
        kinds = page.evaluate("() => [...document.querySelectorAll('[class]')].map(e => e.getAttribute('class'))")
        assert not [kind for kind in kinds if "alert" in kind]
        assert watched.troubles == []


def test_the_policy_holds_in_the_browser(browser: Browser, write) -> None:
    with Watched(browser) as watched:
        page = watched.open(write(load("measure")))
        page.evaluate("() => { const s = document.createElement('script'); s.textContent = 'window.acted = 1';"
                      " document.body.append(s); const d = document.createElement('div');"
                      " d.setAttribute('onclick', 'window.acted = 1'); document.body.append(d);"
                      " d.click(); }")  # fmt: skip
        assert page.evaluate("window.acted") is None
        assert page.evaluate("fetch('https://example.invalid/').then(() => 'asked', () => 'refused')") == "refused"
        assert len([line for line in watched.troubles if "Content Security Policy" in line]) >= 3


def test_evidence_is_marked_where_it_was_seen(browser: Browser, write) -> None:
    run = load("clients")
    with Watched(browser, width=1400) as watched:
        page = watched.open(write(run))
        cards = page.locator("#calls figure")
        assert cards.count() == 2
        first = cards.first
        expect(first.locator(".pins .pin")).to_have_text(["1", "2", "3", "4"])
        case = next(c for c in run.cases if c.findings and c.operation == "call" and c.target == "profile:notion")
        box = first.locator(".whole-lane svg").bounding_box()
        assert box and case.waterfall
        for pin, item in zip(first.locator(".pins .pin").all(), case.findings[0].evidence, strict=True):
            place = pin.bounding_box()
            assert place
            wanted = box["x"] + box["width"] * item.at_s * 1000 / (case.waterfall.total_ms * 1.06)
            assert place["x"] + place["width"] / 2 == pytest.approx(wanted, abs=1.5)
        # Another finding's evidence, in its own call.
        page.locator(".finding").nth(1).locator("button.show").click()
        expect(page.locator("#calls figure").first.locator(".pins .pin")).to_have_text(["1", "2"])
        assert "connect" in page.locator("#calls figcaption").first.inner_text()
        assert watched.troubles == []


def test_two_calls_share_a_scale_where_they_are_told_to(browser: Browser, write) -> None:
    with Watched(browser, width=1400) as watched:
        page = watched.open(write(load("clients")))
        wholes = page.locator("#calls figure .whole")
        assert wholes.nth(1).bounding_box()["width"] > 400
        assert "452×" in page.locator("#calls").inner_text()
        page.get_by_role("button", name="one scale").click()
        assert wholes.nth(1).bounding_box()["width"] < 10
        assert wholes.nth(0).bounding_box()["width"] > 400
        page.locator("#calls select").nth(1).select_option(label="no other")
        assert page.locator("#calls figure").count() == 1


def test_the_keyboard_reaches_everything(browser: Browser, write) -> None:
    with Watched(browser) as watched:
        page = watched.open(write(load("clients")))
        page.keyboard.press("j")
        expect(page.locator("#findings h2")).to_be_focused()
        page.keyboard.press("j")
        expect(page.locator("#trials h2")).to_be_focused()
        page.keyboard.press("k")
        expect(page.locator("#findings h2")).to_be_focused()
        page.keyboard.press("?")
        expect(page.locator("dialog.help")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog.help")).to_be_hidden()
        page.locator("#calls figure .lane:not(.whole-lane) svg").first.focus()
        page.keyboard.press("ArrowDown")
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused.startswith("tools/call greet id 2: opening a connection")
        expect(page.locator("#tip")).to_contain_text("tools/call greet")
        for rows in ("#trials .panel button.link", "#ledger .panel svg.bar"):
            first, second = page.locator(rows).nth(0), page.locator(rows).nth(1)
            first.focus()
            page.keyboard.press("ArrowDown")
            expect(second).to_be_focused()
            page.keyboard.press("ArrowUp")
            expect(first).to_be_focused()
            assert (first.get_attribute("tabindex"), second.get_attribute("tabindex")) == ("0", "-1")
        assert watched.troubles == []


def test_charts_are_read_by_arrow_keys(browser: Browser, write) -> None:
    with Watched(browser) as watched:
        page = watched.open(write(load("load")))
        charts = page.locator("#course .charted")
        charts.focus()
        for _ in range(10):
            page.keyboard.press("ArrowRight")
        reading = page.locator("#course .reading")
        expect(reading).to_contain_text("second 9:")
        expect(reading).to_contain_text("errors")
        page.locator("#distribution .charted").first.focus()
        page.keyboard.press("PageDown")
        expect(page.locator("#distribution .reading").first).to_contain_text("took no longer")
        page.get_by_role("button", name="search_products").click()
        expect(page.locator("#distribution h4").first).to_have_text("search_products")
        assert watched.troubles == []


def test_odd_figures_are_drawn_and_what_cannot_be_is_said_in_its_place(browser: Browser, write) -> None:
    run = load("clients")
    for case in run.cases:
        case.trials_s = [5e-324, 0.0, 1e18][: len(case.trials_s)]
        case.ledger_s = None if case.ledger_s is None else case.ledger_s.model_copy(update={"server": 5e-324})
    with Watched(browser) as watched:
        page = watched.open(write(run))
        expect(page.locator("#trials circle.dot").first).to_be_attached()
        expect(page.locator("#ledger")).to_be_visible()
        assert watched.troubles == []
    with Watched(browser) as watched:
        # One part of an unforeseen run can't be drawn; here, because the browser lacks a required feature.
        watched.page.add_init_script(
            "const made = document.createElementNS.bind(document);"
            "document.createElementNS = (space, tag) => {"
            " if (tag === 'circle') throw new Error('no'); return made(space, tag); }"
        )
        page = watched.open(write(load("bisect")))
        said = page.locator(".banner").all_inner_texts()
        assert any("The trials can't be drawn here" in one for one in said), said
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("#findings")).to_be_visible()
        expect(page.locator("#setup")).to_be_visible()


def test_names_stand_on_pieces_that_have_room_for_them_and_on_no_others(browser: Browser, write) -> None:
    for width in (400, 1280):
        with Watched(browser, width=width) as watched:
            page = watched.open(write(load("clients")))
            cut = page.evaluate(
                "() => [...document.querySelectorAll('.label i')].filter(one => one.offsetParent !== null"
                " && one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 0.5)"
                ".map(one => one.textContent)"
            )
            shown = page.evaluate(
                "() => [...document.querySelectorAll('.label i')].filter(one => one.getClientRects().length).length"
            )
            assert cut == []
            assert shown > 5


LUMINANCE = """selector => {
  const part = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const canvas = document.createElement('canvas').getContext('2d');
  const light = colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const ground = element => { for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (!/, 0\\)$|transparent/.test(colour)) return colour; } return 'white'; };
  const shown = [...document.querySelectorAll(selector)];
  return shown.filter(e => e.textContent.trim() && e.getClientRects().length).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    return [e.className + ': ' + e.textContent.slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; });
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_in_both_themes(dark: bool, browser: Browser, write) -> None:
    for name in ("clients", "load", "bisect"):
        with Watched(browser, dark=dark) as watched:
            page = watched.open(write(load(name)))
            selector = (
                "h1, h2, h3, h4, p, li, dt, dd, td, th, small, .tag, .who, .value, .pin, .again, .axis span, button"
            )
            told = page.evaluate(LUMINANCE, selector)
            assert len(told) > 50
            assert [one for one in told if one[1] < 4.4] == []


def test_the_theme_is_chosen_and_remembered(browser: Browser, write) -> None:
    with Watched(browser, dark=True) as watched:
        url = write(load("measure"))
        page = watched.open(url)

        def ground() -> str:
            return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

        dark = ground()
        page.keyboard.press("t")
        light = ground()
        assert light != dark
        page = watched.open(url)
        assert ground() == light


@pytest.mark.parametrize("width", [340, 700, 1920])
def test_nothing_is_wider_than_the_window(width: int, browser: Browser, write) -> None:
    for run in (*map(load, NAMES), SERVERS):
        with Watched(browser, width=width) as watched:
            page = watched.open(write(run))
            assert page.evaluate("document.documentElement.scrollWidth") <= width, run.kind


def test_print_is_light_and_leaves_nothing_folded(browser: Browser, write) -> None:
    run = load("clients")
    for case in run.cases:
        if case.waterfall:
            case.waterfall.exchanges *= 15
    with Watched(browser, dark=True) as watched:
        page = watched.open(write(run))
        folded = page.locator("#calls .folded").first
        expect(folded).to_be_hidden()
        page.keyboard.press("t")
        page.keyboard.press("t")
        page.emulate_media(media="print")
        expect(folded).to_be_visible()
        expect(page.locator(".topbar")).to_be_hidden()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.pdf()[:5] == b"%PDF-"


NODE = """
const ts = require(process.argv[1] + '/web/node_modules/typescript');
const fs = require('fs');
const s = {};
const options = { compilerOptions: { module: 'commonjs', target: 'es2022' } };
const source = fs.readFileSync(`${process.argv[1]}/web/src/${process.argv[2]}.ts`, 'utf8');
new Function('exports', ts.transpileModule(source, options).outputText)(s);
const given = JSON.parse(fs.readFileSync(0, 'utf8'));
"""
FIGURES = """
const told = given.map(value => ['duration', 'figure', 'times', 'size'].map(name => s[name](value))
  .concat(s.share(value, 1000)));
process.stdout.write(JSON.stringify(told));
"""
SCALES = """
const many = Array.from({length: 300_000}, (_, number) => 1 + number / 1e6);
const scales = [s.covering(many), s.covering([5e-324]), s.covering([5e-324, 1e-300, 1e18]), s.linear(5e-324),
  s.linear(Infinity), s.logarithmic(5e-324, 1e-300), s.covering([]), s.covering(given),
  s.logarithmic(0.031, 0.044, 0, true)];
process.stdout.write(JSON.stringify(scales.map(one => [one.ticks, one.percent(5e-324), one.percent(1e18)])));
"""


def in_node(module: str, program: str, given: object) -> Any:
    """The output of a program for Node.js that uses a module of the page without imports as ``s``."""
    done = subprocess.run(
        ["node", "-e", NODE + program, str(ROOT), module],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def test_figures_are_the_same_in_both_languages() -> None:
    chance = random.Random(7)
    values = [10 ** chance.uniform(-9, 12) for _ in range(5000)]
    values += [0.0, 0.9995, 0.9995e-3, 1.995, 9.95, 9.995, 99.5, 99.95, 999.5, 1000, 1e6, 1e9]
    for value, told in zip(values, in_node("quantities", FIGURES, values), strict=True):
        ours = [duration(value), figure(value), times(value), size(value), share(value, 1000)]
        for mine, theirs in zip(ours, told, strict=True):
            # A figure half way between two is rounded to even there and away from zero here.
            assert mine == theirs or _nearly(mine, theirs), (value, mine, theirs)


def _nearly(mine: str, theirs: str) -> bool:
    """Whether two figures have one format and differ by at most one in the last digit."""
    if re.sub(r"\d", "0", mine) != re.sub(r"\d", "0", theirs):
        return False
    one, other = (int(re.sub(r"\D", "", text)) for text in (mine, theirs))
    # A ratio above a thousand has two significant digits, followed by zeros.
    return abs(one - other) <= 10 ** (len(str(one)) - len(str(one).rstrip("0")) if mine.endswith("×") else 0)


def test_a_scale_is_finite_whatever_it_shows() -> None:
    for ticks, least, most in in_node("scale", SCALES, [0.031, 0.044]):
        assert 2 <= len(ticks) < 100
        assert all(isinstance(tick, int | float) for tick in ticks)
        assert 0 <= least <= most <= 100
