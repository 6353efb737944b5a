"""Adopted servers of other SDKs answer as on their own transport: request by request, in every mode and era.

`alike` removes the intended differences, each with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.adoption import MODERN, SDKS, SOURCES, Pair, Sdk, Subject, served
from support.dialogue import Peer

METHOD_NOT_FOUND = -32601


def examples(sdk: Sdk) -> list[str]:
    names = sorted(path.stem for path in (SOURCES / "servers" / sdk.examples).glob("*.py"))
    return [name for name in names if (SOURCES / "dialogues" / f"{name}.json").exists()]


def subjects(sdk: Sdk) -> list[Subject]:
    """Every example in both modes; the quickstart also without sessions."""
    both = [Subject(example, mode) for example in examples(sdk) for mode in ("json", "sse")]
    return [*both, Subject("quickstart", "json", "stateless"), Subject("context", "sse", "stateless")]


CASES = [
    pytest.param(
        sdk, subject, revision, id=f"{sdk.name}-{subject.example}-{subject.mode}-{subject.sessions}-{revision}"
    )
    for sdk in SDKS
    for subject in subjects(sdk)
    for revision in sdk.revisions
    # The newest revision has no sessions: one way is enough.
    if revision != MODERN or subject.sessions == "sessions"
]


@pytest.fixture(scope="module")
def pairs() -> Iterator[dict[str, dict[Subject, Pair]]]:
    """The servers of each SDK, which are started for its first test and ended with the module."""
    running: dict[str, Any] = {}
    contexts = []

    class Started(dict[str, dict[Subject, Pair]]):
        def __missing__(self, name: str) -> dict[Subject, Pair]:
            # One SDK's servers at a time.
            while contexts:
                contexts.pop().__exit__(None, None, None)
            self.clear()
            sdk = next(sdk for sdk in SDKS if sdk.name == name)
            context = served(sdk, subjects(sdk))
            self[name] = context.__enter__()
            contexts.append(context)
            return self[name]

    running = Started()
    yield running
    while contexts:
        contexts.pop().__exit__(None, None, None)


@pytest.mark.network
@pytest.mark.parametrize(("sdk", "subject", "revision"), CASES)
def test_replies_are_the_same(pairs: dict[str, dict[Subject, Pair]], sdk: Sdk, subject: Subject, revision: str) -> None:
    pair = pairs[sdk.name][subject]
    original, adopted = (Peer(port, revision) for port in (pair.original, pair.adopted))
    for peer in (original, adopted):
        if subject.example == "secured":
            peer.headers["Authorization"] = "Bearer good"
    try:
        assert alike(adopted.open()) == alike(original.open())
        asks = revision != MODERN and subject.sessions == "sessions" and subject.mode == "sse"
        if asks and subject.example in ("context", "visibility"):
            original.listen()
            adopted.listen()
        for line in dialogue(subject):
            if line.get("answers") and not (asks or revision == MODERN):
                # Without a stream or a session mcp refuses to ask, whereas the runtime asks where that is possible.
                continue
            theirs, ours = original.ask(line), adopted.ask(line)
            most = max(len(theirs["ahead"]), len(ours["ahead"]))
            for peer, told in ((original, theirs), (adopted, ours)):
                if peer.standalone is not None and len(told["ahead"]) < most:
                    peer.catch_up(told, most)
            if line.get("malformed"):
                # Both refuse the request; only the runtime gives the reason.
                assert "error" in theirs["answer"] and "error" in ours["answer"], line
                continue
            assert alike(ours) == alike(theirs), line
    finally:
        original.close()
        adopted.close()


def dialogue(subject: Subject) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads((SOURCES / "dialogues" / f"{subject.example}.json").read_text())
    return lines


def alike(told: Any) -> Any:
    """A reply without the intended differences."""
    if isinstance(told, list):
        return [alike(one) for one in told]
    if not isinstance(told, dict):
        return told
    if isinstance(told.get("error"), dict) and told["error"]["code"] == METHOD_NOT_FOUND:
        # The message and the data of the refusal differ between SDKs.
        return {**told, "error": "no such method"}
    # A missing member means `false`.
    return {name: alike(value) for name, value in told.items() if not (name == "isError" and value is False)}
