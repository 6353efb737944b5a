"""Arguments of a load: options, scenarios, thresholds, and contradictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpace.cli import load_scenario, load_words
from mcpace.cli.load_arguments import LoadArguments, merge_arguments, resolve_arguments
from mcpace.lab.errors import LabError, UnknownName, Unreachable, UsageProblem
from mcpace.lab.headers import parse_headers
from mcpace.lab.load import check, thresholds
from mcpace.lab.load.settings import LoadSettings, Ramp

TOOLS: dict[str, dict[str, Any]] = {
    "search": {"name": "search", "inputSchema": {"type": "object", "required": ["q"], "properties": {"q": {}}}},
    "now": {"name": "now", "inputSchema": {"type": "object"}},
}
ECHO = {"echo": {"name": "echo", "inputSchema": {"type": "object", "required": ["text"]}}}


def settled(asked: LoadArguments) -> LoadSettings:
    return resolve_arguments(asked, hold_s=0.0, faults=(), notes=[])


def test_words_become_values() -> None:
    assert load_words.parse_mix(["echo=3", "a=b=0.5", "greet"]) == (("echo", 3.0), ("a=b", 0.5), ("greet", 1.0))
    assert load_words.parse_arguments(['echo={"text": "a=b"}']) == {"echo": {"text": "a=b"}}
    assert load_words.parse_arguments(['{"n": 1}', "b={}"], "a") == {"a": {"n": 1}, "b": {}}
    assert load_words.select_mix("a=b", []) == (("a=b", 1.0),)
    with pytest.raises(UsageProblem, match="--tool and --mix name tools: give one of the two"):
        load_words.select_mix("a", ["b=1"])
    assert load_words.parse_stages("10s:50, 1m:0.5") == (Ramp(10.0, 50.0), Ramp(60.0, 0.5))
    assert load_words.parse_cores("0") == (0,)
    assert parse_headers(["X-Key:  a: b "]) == (("x-key", "a: b"),)


def test_a_header_takes_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOAD_KEY", "s3cret")
    assert parse_headers(["X-Key: Key $LOAD_KEY"]) == (("x-key", "Key s3cret"),)
    assert parse_headers(["X-Key: ${LOAD_KEY}$5"]) == (("x-key", "s3cret$5"),)
    monkeypatch.delenv("LOAD_KEY")
    with pytest.raises(UsageProblem, match="--header X-Key: the environment variable LOAD_KEY is not set"):
        parse_headers(["X-Key: Key $LOAD_KEY"])


@pytest.mark.parametrize(
    ("read", "words", "said"),
    [
        (load_words.parse_mix, ["echo=many"], "is no number"),
        (load_words.parse_mix, ["echo=0"], "above 0"),
        (load_words.parse_mix, ["echo=nan"], "above 0"),
        (load_words.parse_mix, ["echo", "echo=2"], "twice"),
        (load_words.parse_arguments, ["{}"], "TOOL=JSON"),
        (load_words.parse_arguments, ["echo=[1]"], "JSON object, not list"),
        (load_words.parse_arguments, ["echo={"], "not JSON"),
        (load_words.parse_arguments, ['echo={"n": NaN}'], "it has no NaN"),
        (load_words.read_data, ["names"], "NAME=FILE"),
        (load_words.read_data, ["names=/nowhere/at/all"], "No such file"),
        (load_words.parse_stages, "10s", "TIME:COUNT"),
        (load_words.parse_stages, "10s:-1", "TIME:COUNT"),
        (load_words.parse_stages, "ten:5", "TIME:COUNT"),
        (load_words.parse_cores, "9999", "there is no core 9999"),
        (load_words.parse_cores, "3-1", "write numbers of cores"),
        (parse_headers, ["no colon"], "NAME: VALUE"),
        (parse_headers, ["Mcp-Session-Id: s3cret"], "belongs to the protocol"),
        (parse_headers, ["X-Key: s3cret\r\nX-Other: 1"], "control characters"),
        (parse_headers, ["X-Key: s3cret\0"], "control characters"),
        (load_words.read_data, ["names=/dev/zero"], "has more than [0-9,]+ bytes"),
        (load_words.read_data, ["names=/dev/null"], "from 1 to 1,000,000 choices, not 0"),
        (load_words.parse_stages, "10s:nan", "TIME:COUNT"),
        (load_words.parse_stages, "10s:inf", "TIME:COUNT"),
    ],
)
def test_words_that_make_no_sense_are_refused(read: Any, words: Any, said: str) -> None:
    with pytest.raises(UsageProblem, match=said) as refused:
        read(words)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (LoadArguments(vus=1, rate=1.0), "one of the two"),
        (LoadArguments(duration=1.0, stages=(Ramp(1, 1),)), "one of the two"),
        (LoadArguments(mix=(("a", 1),), replay=Path("x")), "one of the two"),
        (LoadArguments(args={"a": {}}, replay=Path("x")), "one of the two"),
        (LoadArguments(arrivals="poisson"), "give --rate too"),
        (LoadArguments(max_in_flight=3, vus=2), "give --rate too"),
        (LoadArguments(rate=1.0, think=1.0), "--think is a user's"),
        (LoadArguments(rate=0.0), "more than none, not 0"),
        (LoadArguments(rate=float("nan")), "more than none, not nan"),
        (LoadArguments(rate=float("inf")), "more than none, not inf"),
        (LoadArguments(seed=2**64), "--seed takes a number from 0 to"),
        (LoadArguments(revision="2025-13-01"), "there is no revision"),
        (LoadArguments(session="thread"), "user, call or none"),
        (LoadArguments(rate=1.0, arrivals="bursts"), "constant or poisson"),
        (LoadArguments(bearer="X", auth="oauth"), "contradict"),
        (LoadArguments(replay=Path("/nowhere/at/all")), "there is no file"),
        (LoadArguments(threshold=("p99<50",)), "needs a unit"),
    ],
)
def test_contradictions_are_refused(asked: LoadArguments, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        settled(asked)


def test_what_is_not_said_has_its_default() -> None:
    assert (settled(LoadArguments()).vus, settled(LoadArguments()).duration_s, settled(LoadArguments()).warm_up_s) == (
        10,
        10.0,
        1.0,
    )
    assert settled(LoadArguments(stages=(Ramp(1, 5),))).vus == 1  # a ramp begins with one user, as k6's
    assert settled(LoadArguments(rate=5.0)).vus is None
    assert settled(LoadArguments(warm_up=0.0)).warm_up_s == 0.0
    assert settled(LoadArguments(cores=(0, 1))).threads == 2


def test_the_command_line_goes_over_the_scenario() -> None:
    scenario = LoadArguments(
        target="a", rate=5.0, arrivals="poisson", stages=(Ramp(1, 5),), mix=(("x", 1.0),), args={"x": {}}
    )
    both = merge_arguments(LoadArguments(vus=3, duration=2.0), scenario)
    assert (both.target, both.vus, both.rate, both.arrivals, both.stages) == ("a", 3, None, None, None)
    assert both.mix == (("x", 1.0),)
    assert merge_arguments(LoadArguments(args={"y": {}}), scenario).args == {"x": {}, "y": {}}
    assert merge_arguments(LoadArguments(replay=Path("r")), scenario).mix is None


# --- scenarios ---


def scenario(folder: Path, text: str) -> LoadArguments:
    (folder / "s.toml").write_text(text)
    return load_scenario.read_scenario(folder / "s.toml")


def test_a_scenario_says_what_options_say(tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_text("Ada\n\nGrace\n")
    found = scenario(
        tmp_path,
        """
        target = "profile:simple"
        rate = 20
        max-in-flight = 7
        stages = ["1s:5", "500ms:9"]
        warm-up = 0
        threshold = ["p99<1s"]
        header = ["X-A: b"]
        [mix]
        echo = 2
        [args.echo]
        text = "{{choice:people}}"
        [data]
        people = "people.txt"
        """,
    )
    assert (found.target, found.rate, found.max_in_flight, found.warm_up) == ("profile:simple", 20.0, 7, 0.0)
    assert found.stages == (Ramp(1.0, 5.0), Ramp(0.5, 9.0))
    assert found.mix == (("echo", 2.0),)
    assert found.args == {"echo": {"text": "{{choice:people}}"}}
    assert found.data == {"people": ["Ada", "Grace"]}
    assert (found.threshold, found.header) == (("p99<1s",), (("x-a", "b"),))


def test_every_option_of_a_load_is_a_key_of_a_scenario() -> None:
    assert set(load_scenario.Scenario.model_fields) == set(LoadArguments.__dataclass_fields__)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("target = 'x'\nduratio = 1", r"s\.toml:2: a scenario has no key 'duratio'; did you mean duration"),
        ("\nvus = 'x'", r"s\.toml:2: vus: "),
        ("vus = 0", r"s\.toml:1: vus must be at least 1"),
        ("max-in-flight = 0", r"s\.toml:1: max-in-flight must be at least 1"),
        ("vus = 3\n[mix]\necho = 'x'", r"s\.toml:2: mix\.echo: "),
        ("vus = 3\n[mix]\necho = -1", r"s\.toml:2: .*above 0"),
        ("duration = 'soon'", r"s\.toml:1: 'soon' is no length of time"),
        ("vus = 3\n[data]\nnames = []", r"s\.toml:2: .*from 1 to 1,000,000 choices, not 0"),
        ("[data]\nnames = '/dev/zero'", r"s\.toml:1: cannot read the data 'names' from /dev/zero"),
        ("[data]\nnames = 'none.txt'", r"s\.toml:1: cannot read the data 'names'"),
        ("vus = \nrate = 1", "is not TOML: .*line 1"),
        ("[mix.echo]\nweight = 1", r"s\.toml:1: mix\.echo"),
        ("[args.echo]\nwhen = 2026-01-01", r"s\.toml:1: arguments are JSON, which has no dates"),
        ("[args.echo]\nn = nan", r"s\.toml:1: arguments are JSON, which has no dates, nan"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=said):
        scenario(tmp_path, text)


# --- what is called ---


def test_the_tool_is_chosen_where_that_is_clear() -> None:
    assert [one.tool for one in check.select_operations({**TOOLS, **ECHO}, LoadSettings())] == ["echo"]
    assert [one.tool for one in check.select_operations(TOOLS, LoadSettings())] == ["now"]
    named = LoadSettings(arguments={"search": {"q": "x"}})
    assert [(one.tool, one.arguments) for one in check.select_operations(TOOLS, named)] == [("search", {"q": "x"})]


def test_arguments_that_are_needed_are_asked_for() -> None:
    with pytest.raises(UsageProblem) as refused:
        check.select_operations(TOOLS, LoadSettings(mix=(("search", 1.0),)))
    assert str(refused.value) == "search needs q; give --args search=JSON"


@pytest.mark.parametrize(
    ("tools", "settings", "problem", "said"),
    [
        ({"search": TOOLS["search"]}, LoadSettings(), UsageProblem, "which tool.*search.*--tool search"),
        ({}, LoadSettings(), Unreachable, "no tools"),
        (TOOLS, LoadSettings(mix=(("serch", 1.0),)), UnknownName, "did you mean search"),
        (TOOLS, LoadSettings(mix=(("now", 1.0),), arguments={"search": {}}), UsageProblem, "--mix too"),
    ],
)
def test_where_it_is_not_clear_the_tools_are_named(
    tools: dict[str, Any], settings: LoadSettings, problem: type[LabError], said: str
) -> None:
    with pytest.raises(problem, match=said):
        check.select_operations(tools, settings)


def test_listings_and_pings_are_operations_unless_they_are_tools() -> None:
    mixed = LoadSettings(mix=(("tools/list", 1.0), ("ping", 1.0)))
    assert [one.kind for one in check.select_operations(TOOLS, mixed)] == ["list", "ping"]
    with_tool = {**TOOLS, "ping": {"name": "ping"}}
    assert [one.kind for one in check.select_operations(with_tool, mixed)] == ["list", "call"]


def test_a_check_sends_what_the_load_may_send() -> None:
    arguments = {
        "n": "{{counter}}",
        "r": "{{random(5,9)}}",
        "t": "no {{counter}} of {{choice:who}}",
        "deep": [{"who": "{{choice:who}}"}],
        "plain": 3,
    }
    assert check.render_templates(arguments, {"who": ["Ada", "Grace"]}) == {
        "n": 0,
        "r": 5,
        "t": "no 0 of Ada",
        "deep": [{"who": "Ada"}],
        "plain": 3,
    }


# --- thresholds ---


@pytest.mark.parametrize(
    ("text", "operation", "metric", "comparison", "limit", "unit"),
    [
        ("p99<50ms", None, "p99", "<", 0.05, "s"),
        (" p99.9 <= 1.5 s ", None, "p99.9", "<=", 1.5, "s"),
        ("errors<0.1%", None, "errors", "<", 0.001, "share"),
        ("errors<=3", None, "errors", "<=", 3.0, "count"),
        ("rps>1000", None, "rps", ">", 1000.0, "rps"),
        ("a:b:mean<20us", "a:b", "mean", "<", 2e-5, "s"),
    ],
)
def test_thresholds_are_read(
    text: str, operation: str | None, metric: str, comparison: str, limit: float, unit: str
) -> None:
    found = thresholds.parse_threshold(text)
    assert (found.operation, found.metric, found.comparison, found.unit) == (operation, metric, comparison, unit)
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    "text", ["", "p99", "p99=5ms", "p100<5ms", "p99<5", "rps>5ms", "errors<5ms", "median<5ms", "<5ms"]
)
def test_what_is_no_threshold_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        thresholds.parse_threshold(text)


def test_a_threshold_on_what_is_not_called_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean echo"):
        thresholds.check_thresholds([thresholds.parse_threshold("ech:p99<1s")], ["echo"])
    thresholds.check_thresholds([thresholds.parse_threshold("initialize:p99<1s")], ["echo"])


def test_the_settings_in_a_run_hold_no_header_values() -> None:
    settings = LoadSettings(vus=1, headers=(("x-key", "s3cret"),))
    assert "s3cret" not in json.dumps(settings.as_options())
    assert settings.as_options()["headers"] == ["x-key"]
    assert "s3cret" not in repr(settings)
