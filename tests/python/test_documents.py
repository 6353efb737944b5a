"""Statements of the documents about the code are still true."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import typer

from mcpace import __version__, _core
from mcpace.cli.commands import app
from mcpace.report.words import findings

ROOT = Path(__file__).parents[2]


def test_generated_documents_are_fresh() -> None:
    script = ROOT / "scripts" / "generate_docs.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_manual_pages_have_every_option_of_the_command_line_reference(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "manual_pages.py"
    subprocess.run([sys.executable, script, tmp_path], capture_output=True, timeout=120, check=True)
    sections = re.split(r"^## mcpace ", (ROOT / "docs" / "cli.md").read_text(), flags=re.M)[1:]
    pages = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(pages) == {"mcpace.1"} | {f"mcpace-{section.split()[0]}.1" for section in sections}
    for section in sections:
        page = pages[f"mcpace-{section.split()[0]}.1"].replace("\\-", "-")
        options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", section, re.M))
        assert options == set(re.findall(r"^\\fB(?:-\w, )?(--[\w-]+)", page, re.M))
    requests = {line.split()[0] for page in pages.values() for line in page.splitlines() if line[:1] in (".", "'")}
    assert requests == {".TH", ".SH", ".TP", ".PP"}


def test_versions_agree() -> None:
    assert __version__ == _core.VERSION


def test_every_finding_has_words_and_every_word_a_finding() -> None:
    assert sorted(findings.CODES) == sorted({entry["code"] for entry in _core.catalogue()["causes"]})


def test_every_make_task_is_in_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())  # type: ignore[index]
    listed = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.M))
    assert phony == listed


def test_the_readme_names_only_commands_that_exist() -> None:
    named = set(re.findall(r"(?:\$ |`|/|' )mcpace ([a-z]+)\b", (ROOT / "README.md").read_text()))
    reference = (ROOT / "docs" / "cli.md").read_text()
    known = set(re.findall(r"^## mcpace ([a-z]+)$", reference, re.M))
    assert "measure" in named
    assert named <= known, named - known


def test_documented_commands_have_only_known_options() -> None:
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    commands = [command for document in documents for command in documented_commands(document.read_text())]
    assert len(commands) > 60
    assert not [problem for command in commands if (problem := unknown_words(command))]


def documented_commands(text: str) -> list[list[str]]:
    """The words of each `mcpace` command in the document's blocks, without those of its environment."""
    blocks = re.findall(r"^```(?:console|sh)\b[^\n]*\n(.*?)^```", text, re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    commands = [re.search(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*mcpace ([a-z].*)", line) for line in lines]
    return [shlex.split(found[1], comments=True) for found in commands if found]


def unknown_words(command: list[str]) -> str | None:
    """The unknown name or options of a command; `None` if all exist."""
    group = typer.main.get_command(app)
    known = group.get_command(typer.Context(group), command[0])  # type: ignore[attr-defined]
    if known is None:
        return f"mcpace {command[0]}"
    options = {option for parameter in known.params for option in [*parameter.opts, *parameter.secondary_opts]}
    given = {word.partition("=")[0] for word in command[1:] if re.match(r"--?[a-z]", word)}
    return f"mcpace {command[0]} {given - options}" if given - options else None


def test_every_finding_is_explained() -> None:
    explained = re.findall(r"^## ([a-z-]+)$", (ROOT / "docs" / "findings.md").read_text(), re.M)
    assert sorted(explained) == sorted({entry["code"] for entry in _core.catalogue()["causes"]})


def test_the_table_of_faults_has_each_fault_in_a_form_that_is_accepted() -> None:
    section = (ROOT / "docs" / "target.md").read_text().partition("\n## Faults\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)(=\w+)?` \| .* \|$", section, re.M)
    whole = section.partition("- These faults cannot be limited to a method: ")[2].partition("\n-")[0]
    problem = fault_problem("nosuch")
    assert problem is not None
    assert [name for name, _ in rows] == problem.rpartition("(faults: ")[2].rstrip(")").split(", ")
    for name, size in rows:
        assert fault_problem(name + size) is None
        assert (fault_problem(f"{name}@ping{size}") is None) == (f"`{name}`" not in whole), name


def fault_problem(text: str) -> str | None:
    """The text of the refusal; `None` if the fault is accepted."""
    try:
        _core.check_faults([text])
    except _core.UsageProblem as problem:
        return str(problem)
    return None


def test_every_module_of_the_run_is_in_its_reference() -> None:
    pages = [(ROOT / "docs" / "reference" / name).read_text() for name in ("run.md", "run-commands.md")]
    shown = [module for page in pages for module in re.findall(r"^::: mcpace\.report\.model\.(\w+)$", page, re.M)]
    modules = {path.stem for path in (ROOT / "python" / "mcpace" / "report" / "model").glob("*.py")}
    assert sorted(shown) == sorted(modules - {"__init__", "base", "context", "contexts"})


def test_paths_named_in_the_tour_exist() -> None:
    page = (ROOT / "docs" / "contributing-tour.md").read_text()
    named = {path for path in re.findall(r"`([\w./-]+/[\w./-]+)`", page) if not path.startswith("tools/")}
    missing = [path for path in sorted(named) if not (ROOT / path).exists()]
    assert named
    assert not missing


def test_links_between_documents_lead_somewhere() -> None:
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    documents = [ROOT / name for name in tracked.splitlines()]
    assert documents
    assert not [broken for document in documents for broken in broken_links(document)]


def broken_links(document: Path) -> list[str]:
    """Relative links of the document to files or headings that do not exist."""
    broken = []
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", text):
        name, _, heading = link.partition("#")
        target = document.parent / name if name else document
        if name.startswith("../../target/doc/"):
            continue  # `cargo doc` writes it
        is_known = target.exists() and (not heading or heading in anchors(target))
        broken += [] if is_known else [f"{document.relative_to(ROOT)}: {link}"]
    return broken


def anchors(document: Path) -> set[str]:
    """Anchors that GitHub makes of the document's headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_picture_is_shown_in_a_document() -> None:
    text = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    images = ROOT / "docs" / "images"
    pictures = [path.relative_to(images).as_posix() for path in images.rglob("*") if path.is_file()]
    assert [name for name in pictures if f"images/{name})" not in text] == []
