"""The findings for the page: each cause once, with its places and its evidence."""

from __future__ import annotations

from collections.abc import Mapping

from mcpace.report.groups import Group
from mcpace.report.page.calls import SHOWN_EVIDENCE
from mcpace.report.page.model import EvidenceShown, FindingPlace, FindingShown
from mcpace.report.words import findings
from mcpace.report.words.labels import confidence_words, role_words
from mcpace.report.words.quantities import clean


def finding_of(group: Group, places: Mapping[int, int]) -> FindingShown:
    """One cause. ``places`` are the indexes of the run's cases, by identity."""
    finding = group.example
    case = next(sighting.case for sighting in group.sightings if sighting.finding is finding)
    return FindingShown(
        code=clean(group.code, 60),
        title=findings.title_for(group.code),
        severity=next(s.finding.severity for s in group.sightings if s.finding.severity == group.severity),
        confidence=confidence_words(finding.confidence, finding.confidence_reason),
        explanation=findings.explanation_for(finding),
        cost=findings.cost_of(finding),
        places=[
            FindingPlace(
                target=clean(place.target, 120),
                operations=", ".join(place.operations),
                subjects=", ".join(clean(subject, 60) for subject in place.subjects),
            )
            for place in group.places
        ],
        advice=clean(finding.advice) or findings.advice_for(group.code, finding.context),
        disproof=findings.disproof_for(finding.disproof),
        alternatives=[findings.alternative_for(other) for other in finding.alternatives],
        evidence=[
            EvidenceShown(number=number, at_s=item.at_s, words=role_words(item.role), event=item.event)
            for number, item in enumerate(finding.evidence[:SHOWN_EVIDENCE], 1)
        ],
        evidence_of=f"{clean(case.subject.label(), 60)}, {case.operation} at {clean(case.target, 120)}",
        case=places[id(case)],
    )
