"""A case of the casebook: one public report, the programs that reproduce it, and the expected answer."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, HttpUrl, ValidationError, field_validator

from mcpace.report.words import findings

FOLDER = Path(__file__).parent
FILE = "case.toml"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Program(_Table):
    """A program, its packages, and the date that its dependencies are resolved as of."""

    language: Literal["python", "node"] = "python"
    packages: list[str]
    before: datetime.date | None = None
    program: str
    arguments: list[str] = []


class Server(Program):
    transport: Literal["http", "stdio"] = "http"
    path: str = "/mcp"


class Case(_Table):
    """A report and its reproduction. ``expected`` was written before the first run."""

    report: HttpUrl
    reported: datetime.date
    symptom: str
    """The reporter's observation."""
    belief: str
    """The cause that the thread names."""
    cause: str
    """The cause, from the fix or the code."""
    expected: list[str]
    """Codes of findings. One of them has to be named with the cause, and none of them without it."""
    shaped_a_rule: bool = False
    """Whether a rule of mcpace was written with this report in view, so that it says nothing about recall."""
    server: Server
    client: Program
    control: dict[str, Any]
    """``differs``, one sentence, and the members of ``server`` and ``client`` that differ."""
    name: str = ""

    @field_validator("expected")
    @classmethod
    def _known_codes(cls, codes: list[str]) -> list[str]:
        unknown = [code for code in codes if code not in findings.CODES]
        if unknown or not codes:
            raise ValueError(f"expected needs codes of docs/findings.md, not {', '.join(unknown) or 'none'}")
        return codes

    @field_validator("control")
    @classmethod
    def _known_control(cls, control: dict[str, Any]) -> dict[str, Any]:
        if unknown := set(control) - {"differs", "server", "client"}:
            raise ValueError(f"control has server, client and differs, not {', '.join(sorted(unknown))}")
        if not isinstance(control.get("differs"), str) or len(control) < 2:
            raise ValueError("control needs a sentence `differs` and a changed server or client")
        return control

    @property
    def repository(self) -> str:
        """``owner/name`` of the report."""
        return "/".join(str(self.report).split("/")[3:5])

    def programs(self, with_cause: bool) -> tuple[Server, Program]:
        """The server and the client, as reported or of the control."""
        if with_cause:
            return self.server, self.client
        changed = {role: self.control.get(role, {}) for role in ("server", "client")}
        return (
            Server.model_validate({**self.server.model_dump(), **changed["server"]}),
            Program.model_validate({**self.client.model_dump(), **changed["client"]}),
        )


class CaseProblem(Exception):
    """A case that can't be read."""


def read_case(folder: Path) -> Case:
    """Reads a case. Raises :class:`CaseProblem` where a member is missing or wrong."""
    try:
        members = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
        case = Case.model_validate({**members, "name": folder.name})
        for with_cause in (True, False):
            for program in case.programs(with_cause):
                if not (folder / program.program).is_file():
                    raise CaseProblem(f"{folder / program.program} is missing")
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise CaseProblem(f"{folder / FILE} can't be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CaseProblem(f"{folder / FILE}: {where}: {first['msg']}") from error
    return case


def read_cases() -> list[Case]:
    """All cases, by name."""
    return [read_case(file.parent) for file in sorted(FOLDER.glob(f"*/{FILE}"))]
