"""The time inside a tool in a real browser: the flame graph's widths, zoom, search and keyboard, and a call's lanes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from mcpace.report.model.run import Run
from mcpace.report.page.html import render
from mcpace.report.page.inside import insides_of
from mcpace.report.page.model import FlameShown
from mcpace.report.words.quantities import duration, share
from support.browser import Watched, chromium

RUN = Path(__file__).parents[2] / "fixtures" / "runs" / "inside.json"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def url(tmp_path: Path) -> str:
    return written(Run.load(RUN), tmp_path)


def written(run: Run, folder: Path) -> str:
    place = folder / "report.html"
    place.write_text(render(run), encoding="utf-8")
    return place.as_uri()


def flame_of(run: Run) -> tuple[FlameShown, float]:
    [shown] = insides_of(run)
    assert shown.flame is not None
    return shown.flame, shown.whole_s


def block(page: Page, name: str) -> Locator:
    """The widest block of a function."""
    return page.locator(f'.flame .block[aria-label^="{name}"]').first


def width(of: Locator) -> float:
    box = of.bounding_box()
    assert box
    return box["width"]


def test_the_widths_are_the_shares_of_the_call(browser: Browser, url: str) -> None:
    flame, server_s = flame_of(Run.load(RUN))
    with Watched(browser) as watched:
        page = watched.open(url)
        whole = width(page.locator(".flame .b-call"))
        for number in range(1, len(flame.parents) + 1):
            time_s = flame.running_s[number - 1] + flame.waiting_s[number - 1]
            drawn = page.locator(f'.flame [data-node="{number}"]')
            if time_s < server_s * 0.002:
                continue
            assert width(drawn) == pytest.approx(whole * time_s / server_s, abs=1.0)
        outermost = page.locator('.flame [aria-level="2"]').all()
        assert sum(width(one) for one in outermost) == pytest.approx(whole, abs=2.0)
        assert watched.troubles == []


def test_a_click_zooms_in_and_escape_zooms_out(browser: Browser, url: str) -> None:
    with Watched(browser) as watched:
        page = watched.open(url)
        whole = width(page.locator(".flame .b-call"))
        built = block(page, "AsyncClient.__init__")
        assert width(built) < whole * 0.9
        built.click()
        assert width(built) == pytest.approx(whole, abs=1.0)
        expect(block(page, "forecast")).to_have_class(re.compile("around"))
        expect(page.locator(".flame .b-dependency")).to_have_count(0)
        button = page.get_by_role("button", name="Show the whole call")
        expect(button).to_be_visible()
        page.keyboard.press("Escape")
        expect(button).to_be_hidden()
        assert width(built) < whole * 0.9
        assert watched.troubles == []


def test_the_keyboard_walks_and_zooms(browser: Browser, url: str) -> None:
    with Watched(browser) as watched:
        page = watched.open(url)
        assert page.locator('.flame [tabindex="0"]').count() == 1
        page.locator(".flame .b-call").focus()
        focused = page.locator(".flame .block:focus")
        levels = []
        for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
            page.keyboard.press(key)
            levels.append(focused.get_attribute("aria-level"))
        assert levels == ["2", "3", "2"]
        first = focused.get_attribute("data-node")
        page.keyboard.press("ArrowRight")
        assert focused.get_attribute("data-node") != first
        expect(page.locator("#tip")).to_contain_text("of the call")
        page.keyboard.press("ArrowLeft")
        assert focused.get_attribute("data-node") == first
        page.keyboard.press("ArrowDown")
        inner = focused.get_attribute("data-node")
        page.keyboard.press("Enter")
        assert focused.get_attribute("data-node") == inner
        assert width(focused) == pytest.approx(width(page.locator(".flame .b-call")), abs=1.0)
        assert page.locator('.flame [tabindex="0"]').count() == 1
        page.keyboard.press("Escape")
        expect(page.locator(".flame .b-call")).to_be_focused()
        assert watched.troubles == []


def test_a_search_marks_and_sums(browser: Browser, url: str) -> None:
    flame, server_s = flame_of(Run.load(RUN))
    matches = [bool(re.search("ssl", f"{flame.names[frame]} {flame.places[frame]}")) for frame in flame.frames]
    time_s = [running + waiting for running, waiting in zip(flame.running_s, flame.waiting_s, strict=True)]

    def is_covered(node: int) -> bool:
        parent = flame.parents[node - 1]
        return parent > 0 and (matches[parent - 1] or is_covered(parent))

    summed = sum(time_s[node] for node in range(len(matches)) if matches[node] and not is_covered(node + 1))
    assert summed > server_s / 10, "the search finds too little to prove anything"
    with Watched(browser) as watched:
        page = watched.open(url)
        page.get_by_label("Search").fill("SSL")
        told = page.locator(".flame-graph [role=status]")
        expect(told).to_have_text(
            f"{sum(matches)} calls match: {duration(summed)}, {share(summed, server_s)} of the call"
        )
        marked = page.locator(".flame .match").evaluate_all("all => all.map(one => Number(one.dataset.node))")
        assert marked
        assert all(matches[node - 1] for node in marked)
        block(page, "forecast").click()
        expect(page.locator(".flame .match").first).to_be_visible()
        page.get_by_label("Search").fill("no such function")
        expect(told).to_have_text("No call matches.")
        expect(page.locator(".flame .match")).to_have_count(0)
        assert watched.troubles == []


def test_names_of_a_peer_are_text(browser: Browser, tmp_path: Path) -> None:
    run = Run.load(RUN)
    evil = "<img src=x onerror=alert(1)>\u202e"
    for case in run.cases:
        if case.inside is not None and case.inside.flame is not None:
            case.inside.flame.functions = [evil] * len(case.inside.flame.functions)
            case.inside.dependencies[0].name = evil
            for line in case.inside.lines:
                line.function = line.file = evil
        for lane in case.waterfall.dependencies if case.waterfall else []:
            lane.name = evil
    with Watched(browser) as watched:
        page = watched.open(written(run, tmp_path))
        assert page.locator(".flame .block").count() > 5
        assert "<img src=x" in page.locator("#inside").inner_text()
        assert page.locator("main img").count() == 0
        assert "\u202e" not in page.content()
        assert watched.troubles == []


def test_requests_of_the_server_lie_where_they_were_made(browser: Browser, url: str) -> None:
    [case] = [case for case in Run.load(RUN).cases if case.operation == "call"]
    assert case.waterfall
    [lane] = case.waterfall.dependencies
    assert len(lane.spans) == 5
    with Watched(browser) as watched:
        page = watched.open(url)
        # The connect takes longer, and is drawn first.
        page.locator("#calls select").first.select_option(index=1)
        drawn = page.locator("#calls .to-dependency svg")
        box = drawn.bounding_box()
        assert box
        bars = drawn.locator("rect")
        expect(bars).to_have_count(5)
        for bar, span in zip(bars.all(), lane.spans, strict=True):
            place = bar.bounding_box()
            assert place
            scale = box["width"] / (case.waterfall.total_ms * 1.06)
            assert place["x"] == pytest.approx(box["x"] + span.from_ms * scale, abs=1.5)
            assert place["width"] == pytest.approx((span.to_ms - span.from_ms) * scale, abs=1.5)
        drawn.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(bars.nth(1)).to_be_focused()
        expect(page.locator("#tip")).to_contain_text(lane.spans[1].pattern)
        page.keyboard.press("ArrowUp")
        expect(page.locator("#calls .lane:not(.whole-lane) svg").first).to_be_focused()
        assert watched.troubles == []


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_legible_at_400_pixels(dark: bool, browser: Browser, url: str) -> None:
    with Watched(browser, width=400, dark=dark) as watched:
        page = watched.open(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        fills = page.locator(".flame .block span:visible").evaluate_all(CONTRAST)
        assert len(fills) > 5
        assert [one for one in fills if one[1] < 4.5] == []
        assert watched.troubles == []


CONTRAST = """all => {
  const part = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = colour => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  return all.map(one => {
    const [a, b] = [light(getComputedStyle(one).color), light(getComputedStyle(one.parentElement).backgroundColor)];
    return [one.textContent, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; });
}"""
