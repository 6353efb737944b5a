"""Exports a comparison for CI systems: as Markdown for a summary or a comment, and as JUnit's XML.

Design constraint: text from a peer is data in these formats, too, so markup of either format is escaped.
"""

from __future__ import annotations

import re
from typing import Literal
from xml.etree import ElementTree

from mcpace.report.model.comparison import Compared
from mcpace.report.model.run import Run
from mcpace.report.verdict import sentences
from mcpace.report.words import findings
from mcpace.report.words.comparison import (
    METRICS,
    left_out,
    place,
    ratio_words,
    sees_words,
    sides,
    value,
    verdict_words,
    warnings,
)
from mcpace.report.words.quantities import NO_BREAK, clean

NO_LINK = "\N{ZERO WIDTH SPACE}"
MARKUP = re.compile(r"([\\`*\[\]<>#|~&@]|(?<![^\W_])_|_(?![^\W_])|^[+-])")
"""Characters that GitHub's Markdown interprets as markup. An underscore within a word and a hyphen within a line are
not markup and are not escaped, so that names stay readable in a log."""


def markdown(run: Run) -> str:
    """The comparison as Markdown: a heading, the verdict and a table of all figures."""
    made = run.comparison
    title = "Comparison" if run.kind != "gate" else f"Speed gate: {_outcome(run)}"
    lines = [f"### {title}", "", *(_escape_markdown(sentence) + "  " for sentence in sentences(run)), ""]
    if made is None or not made.attempts:
        return "\n".join(lines)
    lines += [
        "| | figure | first | second | ratio (95 %) | would see | |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in made.attempts[-1].rows:
        cells = (
            place(row.subject, row.target, row.operation, row.tool),
            METRICS[row.metric],
            value(row, row.base),
            value(row, row.now),
            ratio_words(row),
            sees_words(row),
            verdict_words(row),
        )
        lines.append("| " + " | ".join(_escape_markdown(cell) for cell in cells) + " |")
    notes = [*warnings(made), *left_out(made)]
    lines += ["", *(f"- {_escape_markdown(note)}" for note in notes)]
    lines.append("")
    told = sides(run)
    for name, what, where in told:
        lines.append(_escape_markdown(f"{name}: {what}, {where.cores} cores, {clean(where.cpu, 60)}") + "  ")
    machine = run.machine
    here = "" if len(told) == 2 else f", {machine.cores} cores, {clean(machine.cpu, 60)}"
    lines += [_escape_markdown(f"mcpace {run.mcpace}, {run.started}{here}"), ""]
    return "\n".join(lines)


def junit(run: Run) -> str:
    """The comparison as JUnit's XML, with one test case for each figure, each broken case and each new finding.

    The result agrees with the exit code: there are failures only where the gate is red, and an error where the gate
    has not judged.
    """
    made = run.comparison
    outcome = _outcome(run)
    red = outcome == "failed"
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
    errors = 0
    if outcome in ("not judged", "inconclusive"):
        errors = _add_case(suite, "mcpace gate", "judged", _xml_text(" ".join(sentences(run)[:1])), "error")
    counts = {"tests": str(len(suite)), "failures": str(failures), "errors": str(errors)}
    suite.attrib.update(counts)
    whole = ElementTree.Element("testsuites", counts)
    whole.append(suite)
    ElementTree.indent(whole)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(whole, encoding="unicode") + "\n"


def _outcome(run: Run) -> Literal["passed", "failed", "inconclusive", "not judged"]:
    made = run.comparison
    if made is None or run.partial or not made.judged:
        return "not judged"
    if made.red:
        return "failed"
    return "inconclusive" if made.inconclusive else "passed"


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


def _escape_markdown(text: str) -> str:
    escaped = MARKUP.sub(r"\\\1", clean(text, 1000)).replace(NO_BREAK, " ")
    # GitHub links addresses, user names and issue numbers even if they are escaped.
    return re.sub(r"(?i)(:)(?=//)|(www)(?=\\?\.)|([@#])", lambda match: match[0] + NO_LINK, escaped)


def _xml_text(text: str) -> str:
    return clean(text, 1000).replace(NO_BREAK, " ")
