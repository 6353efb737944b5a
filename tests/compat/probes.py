"""The requests that every server object gets, in order.

The arguments come from the lists of the original server, so that each way of serving gets the same requests.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from values import members, mistaken
from wire import RUN_LIMIT_S, Answer, Gone, Peer

REQUEST_LIMIT_S = 5.0
MOST = 25
"""Maximum number of tried tools, resources, templates and prompts of one server."""
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


@dataclass(frozen=True)
class Step:
    label: str
    method: str
    params: dict[str, Any]


@dataclass
class Transcript:
    """The answers of one server in one revision, by the label of the request."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Notifications and questions, each with the label of its request."""
    steps: list[Step] = field(default_factory=list)
    end: str | None = None
    """Reason why the run ended early."""

    def to_json(self) -> dict[str, Any]:
        return {"answers": self.answers, "messages": self.messages, "end": self.end}


def run(peer: Peer, steps: list[Step] | None, first_limit_s: float) -> Transcript:
    """Sends the steps. Where there are none yet, they are made from the server's own lists."""
    done = Transcript()
    deadline = time.monotonic() + RUN_LIMIT_S
    try:
        answer = peer.open(first_limit_s)
        _keep(done, "open", answer)
        if "result" not in answer.reply:
            return done
        if not peer.is_modern:
            _keep(done, "ping", peer.ask("ping", {}, REQUEST_LIMIT_S))
        listed = {name: _pages(done, peer, method, name) for method, name in LISTS.items()}
        done.steps = _steps(listed, peer) if steps is None else steps
        for step in done.steps:
            if time.monotonic() > deadline:
                done.end = "out of time"
                break
            _keep(done, step.label, peer.ask(step.method, step.params, REQUEST_LIMIT_S))
    except Gone:
        done.end = "the server has ended"
    finally:
        peer.close()
    done.messages += [("apart", told) for told in peer.apart]
    return done


def _keep(done: Transcript, label: str, answer: Answer) -> None:
    done.answers[label] = {key: value for key, value in answer.reply.items() if key not in ("id", "jsonrpc")}
    done.messages += [(label, told) for told in answer.ahead]


def _pages(done: Transcript, peer: Peer, method: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    for page in range(10):
        answer = peer.ask(method, cursor, REQUEST_LIMIT_S)
        _keep(done, f"{method} {page + 1}" if page else method, answer)
        found += answer.result.get(name) or []
        if not answer.result.get("nextCursor"):
            break
        cursor = {"cursor": answer.result["nextCursor"]}
    return found


def _steps(listed: dict[str, list[dict[str, Any]]], peer: Peer) -> list[Step]:
    steps: list[Step] = []

    def add(label: str, method: str, **params: Any) -> None:
        steps.append(Step(label, method, params))

    for tool in listed["tools"][:MOST]:
        name, schema = tool["name"], tool.get("inputSchema") or {}
        least, every = members(schema, everything=False), members(schema, everything=True)
        add(f"call {name} least", "tools/call", name=name, arguments=least)
        if every != least:
            add(f"call {name} all", "tools/call", name=name, arguments=every)
        if least:
            add(f"call {name} none", "tools/call", name=name, arguments={})
        if (wrong := mistaken(schema)) is not None:
            add(f"call {name} wrong", "tools/call", name=name, arguments=wrong)
    add("call unknown", "tools/call", name="no_such_tool", arguments={})
    for one in listed["resources"][:MOST]:
        add(f"read {one['uri']}", "resources/read", uri=one["uri"])
    for one in listed["resourceTemplates"][:MOST]:
        for value in ("1", "text"):
            add(f"read {one['uriTemplate']} {value}", "resources/read", uri=_expanded(one["uriTemplate"], value))
    add("read unknown", "resources/read", uri="nosuch://resource")
    for one in listed["prompts"][:MOST]:
        names = [argument["name"] for argument in one.get("arguments") or []]
        add(f"prompt {one['name']}", "prompts/get", name=one["name"], arguments=dict.fromkeys(names, "text"))
        if names:
            add(f"prompt {one['name']} none", "prompts/get", name=one["name"])
        for name in names[:2]:
            reference = {"type": "ref/prompt", "name": one["name"]}
            add(f"complete {one['name']} {name}", "completion/complete", ref=reference, argument=_typed(name))
    add("prompt unknown", "prompts/get", name="no_such_prompt")
    for one in listed["resourceTemplates"][:MOST]:
        for name in re.findall(r"[{,&?+/;.#]([A-Za-z_]\w*)", one["uriTemplate"])[:2]:
            reference = {"type": "ref/resource", "uri": one["uriTemplate"]}
            add(f"complete {one['uriTemplate']} {name}", "completion/complete", ref=reference, argument=_typed(name))
    if not peer.is_modern:
        add("set level", "logging/setLevel", level="info")
    for method in LISTS:
        add(f"{method} again", method)
    return steps


def _typed(name: str) -> dict[str, str]:
    return {"name": name, "value": "p"}


def _expanded(template: str, value: str) -> str:
    def one(match: re.Match[str]) -> str:
        operator, names = match[1], [name.rstrip("*") for name in match[2].split(",")]
        if operator in ("?", "&"):
            return operator + "&".join(f"{name}={value}" for name in names)
        return {"/": "/", "#": "#", ".": "."}.get(operator, "") + ",".join(value for _ in names)

    return re.sub(r"\{([+#./;?&]?)([^}]+)\}", one, template)
