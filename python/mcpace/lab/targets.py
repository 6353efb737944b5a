"""Target of an experiment, parsed from the TARGET argument.

A target is a URL, ``stdio:COMMAND``, ``serve:COMMAND`` for a program that listens, ``MODULE:SERVER`` or
``FILE.py:SERVER`` for a server object, ``profile:NAME``, or the name of a server in an ``mcp.json``. Commands are split
into words and never passed to a shell.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from mcpace import _core
from mcpace.lab.errors import UsageProblem
from mcpace.lab.files import is_unicode, read_text
from mcpace.lab.processes.starters import start_in_folder
from mcpace.lab.server_configuration import ConfiguredServer, read_configuration

Auth = Literal["none", "bearer", "oauth"]

TOKEN_VARIABLE = "MCPACE_TOKEN"
GITHUB_TOKEN_VARIABLE = "MCPACE_GITHUB_TOKEN"
SECRET = r"(?:key|token|secret|passw|passphrase|credential|auth|signature)[\w.-]*"
SECRET_OPTION = re.compile(rf"-[\w.-]*{SECRET}", re.IGNORECASE)
"""An option whose value, the next word, is secret."""
SECRET_VALUE = re.compile(rf"({SECRET}\s*[=:]\s*)\S.*", re.IGNORECASE | re.DOTALL)
URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)
"""A URL of any scheme, anywhere in a word."""
USER_INFORMATION = re.compile(r"(?<=://)(?:[^/?#]*@|[^/@:]*:(?!\d+[/?#])[^@]*@)")
"""User information of a URL, including a password with characters that should have been escaped."""
SERVER_OBJECT = re.compile(r"(?!https?:)(?:[^:\0]+\.py|[^\W\d]\w*(?:\.[^\W\d]\w*)*):[^\W\d]\w*(?:\.[^\W\d]\w*)*")
"""``MODULE:SERVER`` or ``FILE.py:SERVER``."""
KINDS = "a URL, stdio:COMMAND, serve:COMMAND, MODULE:SERVER, FILE.py:SERVER, profile:NAME"
"""The forms of TARGET that need no configuration, for messages."""
MOST_PEM = 4 * 1024 * 1024
"""Maximum bytes of a certificate file. The bundles of operating systems have a quarter of a megabyte."""


@dataclass(frozen=True)
class Tool:
    """A tool call: the tool's name and its arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """A program that listens, which mcpace starts for the time of an experiment: a command or a server object."""

    command: tuple[str, ...] = ()
    server_object: str = ""
    """``MODULE:SERVER``, loaded by ``python``."""
    python: str = sys.executable


@dataclass(frozen=True)
class Target:
    """Address of a server and the credentials for it."""

    name: str
    """Name as the user typed it. Possible secrets in a URL or a command are removed, since names go into reports."""
    profile: str | None = None
    url: str | None = None
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """Extra environment variables of ``command`` and ``program``."""
    program: Program | None = None
    """Program to start before the first connection. ``url`` is its address, where the user named one."""
    auth: Auth = "none"
    token: str | None = field(default=None, repr=False)
    """Token for ``auth="bearer"``."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Further headers of each HTTP request to ``url``: lower-case names and values, which may be secret."""
    tool: Tool | None = None
    """Tool to call; ``None`` where the user named no tool."""

    def authentication(self) -> dict[str, Any]:
        """Authentication settings in the format of adapter programs (adapters/README.md)."""
        match self.auth:
            case "none":
                return {"kind": "none"}
            case "bearer":
                return {"kind": "bearer", "token": self.token}
            case "oauth":
                # Our own profile consents by itself; a real server's consent page needs a person and a browser.
                return {"kind": "oauth", "consent": "follow" if self.profile else "browser"}


GREET = Tool("greet", {"name": "mcpace"})


def parse_target(
    text: str,
    *,
    config: Path | None = None,
    auth: Auth | None = None,
    tool: Tool | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    python: str = sys.executable,
) -> Target:
    """Parses TARGET. ``headers`` replace headers of the same names in the configuration. ``python`` is the interpreter
    that loads a server object.

    Raises :class:`UsageProblem` for text of any other form, with the most similar known names.
    """
    if not is_unicode(text):
        raise UsageProblem(f"{text!r} is not a target: it is not UTF-8 text")
    target = _parse_address(text, config, python)
    if headers:
        target = _with_headers(target, headers)
    if auth is not None and target.profile is None:
        target = replace(target, auth=auth)
    if target.auth == "bearer" and target.token is None:
        target = replace(target, token=_bearer_token(target))
    return replace(target, tool=tool) if tool is not None else target


def _with_headers(target: Target, headers: tuple[tuple[str, str], ...]) -> Target:
    if target.url is None and target.program is None:
        kind = "a process" if target.command else "a profile"
        raise UsageProblem(f"--header needs a target with a URL, and {target.name} is {kind}")
    names = {name for name, _ in headers}
    if "authorization" in names:
        target = replace(target, auth="none", token=None)
    kept = tuple(header for header in target.headers if header[0] not in names)
    return replace(target, headers=(*kept, *headers))


def read_certificate(path: Path) -> str:
    """Returns the text of a PEM certificate file.

    Raises :class:`UsageProblem` where the file can't be read or has no certificate.
    """
    text = read_text(path, "the certificate", MOST_PEM)
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise UsageProblem(f"cannot read the certificate {path}: there is no PEM certificate in it")
    return text


def _parse_address(text: str, config: Path | None, python: str) -> Target:
    if text.startswith("profile:"):
        return _profile_target(text)
    if text.startswith("stdio:"):
        command = _command_words(text.removeprefix("stdio:"), "stdio:'python server.py'")
        return Target(name=redact_command(text), command=command)
    if text.startswith("serve:"):
        return _served_target(text)
    if text.startswith(("http://", "https://")):
        return Target(name=redact_url(text), url=_checked_url(text))
    if config is not None:
        return configured_target(text, read_configuration(config).server(text))
    if SERVER_OBJECT.fullmatch(text):
        return Target(name=text, program=Program(server_object=text, python=python))
    if text.endswith(".py"):
        raise UsageProblem(f"{text!r} is a file without its server object: write {text}:SERVER, as in {text}:mcp")
    profiles = [f"profile:{name}" for name in _core.PROFILES]
    near = difflib.get_close_matches(text, profiles + list(_core.PROFILES), n=2, cutoff=0.5)
    meant = dict.fromkeys(name if name.startswith("profile:") else f"profile:{name}" for name in near)
    hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
    raise UsageProblem(f"{text!r} is not a target: give {KINDS}, or a server's name with --config mcp.json.{hint}")


def _served_target(text: str) -> Target:
    """``serve:COMMAND``, or ``serve:URL COMMAND`` where mcpace can't find the address by itself."""
    command = _command_words(text.removeprefix("serve:"), "serve:'python server.py'")
    url = None
    if URL.fullmatch(command[0]):
        url, command = _checked_url(command[0]), command[1:]
        if not command:
            raise UsageProblem(f"{redact_url(text)} names no command: write serve:URL COMMAND, or the URL alone")
    return Target(name=redact_command(text), url=url, program=Program(command))


def _checked_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        complete = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise UsageProblem(f"{text!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https"):
        raise UsageProblem(
            f"{redact_url(text)!r} is not a URL of an MCP server: it must begin with http:// or https://"
        )
    if not complete:
        raise UsageProblem(f"{text!r} names no host: a URL target looks like http://127.0.0.1:8000/mcp")
    return text


def redact_url(url: str) -> str:
    """Removes possible secrets from a URL of any scheme: user information, fragment, and values of the query."""
    url = USER_INFORMATION.sub("", url)
    try:
        parts = urlsplit(url)
    except ValueError:
        # Not a URL, which the caller's own check reports.
        return url.partition("?")[0].partition("#")[0]
    names = "&".join(f"{name}=…" for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return parts._replace(query=names, fragment="").geturl()


def redact_command(text: str) -> str:
    """Removes the values of options, variables and headers that are secret by their names.

    A command without such values is returned unchanged.
    """
    words = _command_words(text)
    redacted: list[str] = []
    for word, before in zip(words, ("", *words), strict=False):
        if URL.fullmatch(word):
            redacted.append(redact_url(word))
        elif SECRET_OPTION.fullmatch(before) and not word.startswith("-"):
            redacted.append("…")
        else:
            redacted.append(URL.sub(lambda url: redact_url(url[0]), SECRET_VALUE.sub(r"\1…", word)))
    if redacted == list(words):
        return text
    return " ".join(word if "…" in word else shlex.quote(word) for word in redacted)


def _profile_target(text: str) -> Target:
    name = text.removeprefix("profile:")
    if name not in _core.PROFILES:
        near = difflib.get_close_matches(name, _core.PROFILES, n=1, cutoff=0.3)
        hint = f" Did you mean profile:{near[0]}?" if near else ""
        raise UsageProblem(f"there is no profile {name!r}; there are {', '.join(_core.PROFILES)}.{hint}")
    auth: dict[str, Auth] = {"notion": "oauth", "github": "bearer"}
    return Target(name=text, profile=name, auth=auth.get(name, "none"), tool=GREET)


def _bearer_token(target: Target) -> str:
    if target.profile is not None:
        # Imported late: the module loads OpenSSL.
        import secrets

        return os.environ.get(GITHUB_TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise UsageProblem(f"{target.name} needs a bearer token: put it into the environment variable {TOKEN_VARIABLE}")
    if not is_unicode(token):
        raise UsageProblem(f"the environment variable {TOKEN_VARIABLE} is not UTF-8 text")
    return token


def _command_words(command: str, example: str = "stdio:'python server.py'") -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageProblem(f"cannot read the command {command!r}: {error}") from error
    if not words:
        raise UsageProblem(f"{example.partition(':')[0]}: needs a command, as in {example}")
    return words


def configured_target(name: str, server: ConfiguredServer) -> Target:
    """The target of a server of a configuration.

    Raises :class:`UsageProblem` where its URL is none of an MCP server.
    """
    if server.url is None:
        command = server.command
        if server.folder is not None:
            # The instrumented client starts programs in its own folder.
            command = start_in_folder(command, server.folder)
        return Target(name=name, command=command, environment=server.environment)
    bearer = [value for header, value in server.headers if header == "authorization" and _is_bearer(value)]
    if bearer:
        others = tuple(pair for pair in server.headers if pair[0] != "authorization")
        return Target(
            name=name, url=_checked_url(server.url), headers=others, auth="bearer", token=bearer[0][7:].strip()
        )
    return Target(name=name, url=_checked_url(server.url), headers=server.headers)


def _is_bearer(value: str) -> bool:
    return value.lower().startswith("bearer ")
