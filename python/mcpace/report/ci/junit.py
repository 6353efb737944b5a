"""A comparison and limits on tokens as JUnit's XML, which most CI systems show as test results."""

from __future__ import annotations

from xml.etree import ElementTree

from mcpace.report.ci.problems import gate_outcome
from mcpace.report.model.comparison import Compared
from mcpace.report.model.run import Run
from mcpace.report.verdict import sentences
from mcpace.report.words import findings, tokens
from mcpace.report.words.comparison import METRICS, place, ratio_words, value, verdict_words
from mcpace.report.words.drift import change_words
from mcpace.report.words.quantities import NO_BREAK, clean


def junit(run: Run) -> str:
    """The run of a gate as JUnit's XML, with one test case for each figure, each broken case, each new finding, each
    limit on tokens and each listing.

    The result agrees with the exit code: there are failures only where the gate is red, and an error where the gate
    has not judged.
    """
    made = run.comparison
    outcome = gate_outcome(run)
    # Another part of the gate, such as a limit on tokens, may be the one that failed.
    red = outcome == "failed" and made is not None and made.red and made.reasons != ["drift"]
    suite = ElementTree.Element("testsuite", name="mcpace gate", timestamp=_xml_text(run.started)[:40])
    failures = 0
    last = made.attempts[-1] if made and made.attempts else None
    for row in last.rows if last else []:
        failures += _add_figure(suite, row, red=red)
    for one in last.broken if last else []:
        what = place(one.subject, one.target, one.operation, one.tool)
        failures += _add_case(suite, what, "works", _xml_text(one.error or "it fails") if red else "")
    for found in last.new_findings if last else []:
        grave = red and found.severity != "low"
        told = findings.clause_for(found.code)
        failures += _add_case(
            suite, place(found.subject, found.target, found.operation, None), found.code, told if grave else ""
        )
    for limit in run.limits:
        what = "tokens of the tools" if limit.subject == "listing" else "tokens of the largest result"
        told = "" if limit.is_met else _xml_text(tokens.limit_words(limit))
        failures += _add_case(suite, _xml_text(limit.target or "target"), what, told)
    drift_limit = made.drift_limit if made is not None else None
    for drift in made.drifts if made is not None else []:
        refused = [change_words(one) for one in drift.refused(drift_limit)]
        failures += _add_case(suite, clean(drift.target, 1000), "listing", _xml_text("; ".join(refused)))
    errors = 0
    if outcome in ("not judged", "inconclusive"):
        errors = _add_case(suite, "mcpace gate", "judged", _xml_text(" ".join(sentences(run)[:1])), "error")
    counts = {"tests": str(len(suite)), "failures": str(failures), "errors": str(errors)}
    suite.attrib.update(counts)
    whole = ElementTree.Element("testsuites", counts)
    whole.append(suite)
    ElementTree.indent(whole)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(whole, encoding="unicode") + "\n"


def _add_figure(suite: ElementTree.Element, row: Compared, *, red: bool) -> int:
    told = f"{value(row, row.base)} to {value(row, row.now)}, {ratio_words(row)}: {verdict_words(row)}"
    where = place(row.subject, row.target, row.operation, row.tool)
    failed = _add_case(suite, where, METRICS[row.metric], _xml_text(told) if red and row.breach else "")
    ElementTree.SubElement(suite[-1], "system-out").text = _xml_text(told)
    return failed


def _add_case(suite: ElementTree.Element, where: str, name: str, wrong: str, what: str = "failure") -> int:
    case = ElementTree.SubElement(suite, "testcase", classname=_xml_text(where), name=_xml_text(name))
    if not wrong:
        return 0
    ElementTree.SubElement(case, what, message=wrong).text = wrong
    return 1


def _xml_text(text: str) -> str:
    return clean(text, 1000).replace(NO_BREAK, " ")
