"""What the documentation shows works: its Python runs, its command lines parse, its links lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_cases import command

from gind.cli import commands
from gind.experiments import assignment, combine, make_spec
from gind.reports.ledger_page import anchor

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "tuned/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]
DECISIONS = sorted(f"docs/decisions/{path.name}" for path in (ROOT / "docs" / "decisions").glob("*.md"))


def blocks(page: str) -> Iterator[tuple[str, int, list[str]]]:
    """The fenced blocks of a page: language, the number of their first line, lines."""
    language, first, lines = None, 0, list[str]()
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, first, lines = line[3:], number + 1, []
        else:
            yield language, first, lines
            language = None


def prose(page: str) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)


def shown_commands(page: str) -> list[tuple[str, bool]]:
    """Every `gind ...`, in blocks and in the text, and whether it is to be typed rather than an example of output."""
    found = [(line.strip(), True) for kind, _, lines in blocks(page) if kind == "sh" for line in lines]
    found += [(line[2:], False) for _, _, lines in blocks(page) for line in lines if line.startswith("$ ")]
    # the text may name a command without its arguments; asked for its help, it still refuses unknown options
    found += [(f"{line} --help", False) for line in re.findall(r"`(gind [^`]+)`", prose(page))]
    return [(line, typed) for line, typed in found if re.match(r"gind [a-z-]", line)]


@pytest.mark.parametrize("page", [page for page in PAGES if any(kind == "python" for kind, _, _ in blocks(page))])
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page as one script; an error shows the line of the page."""
    script: list[str] = []
    for language, first, lines in blocks(page):
        if language == "python":
            script += [""] * (first - 1 - len(script)) + lines
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(script), str(ROOT / page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("page", [page for page in PAGES if shown_commands(page)])
def test_command_lines_parse(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[commands.Request] = []
    for name in set(commands.__all__) - {"Request"}:
        monkeypatch.setattr(commands, name, requests.append if name == "train" else _nothing)
    for line, typed in shown_commands(page):
        arguments = shlex.join(shlex.split(line, comments=True)[1:])
        requests.clear()
        outcome = command(arguments)
        assert outcome.code == 0, f"{line}: {outcome.stderr}"
        for request in requests if typed else ():
            make_spec(combine([{"dataset": "digits"}, *map(assignment, request.assignments)]))


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in [*PAGES, *DECISIONS]:
        if page.startswith("docs/") and page != "docs/index.md":
            assert f"({page.removeprefix('docs/')})" in index


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS])
def test_links_lead_to_files_and_sections(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)", prose(page)):
        name, _, section = target.partition("#")
        if "://" not in target:
            file = (ROOT / page).parent.joinpath(name) if name else ROOT / page
            assert file.exists(), f"{page}: {target}"
            assert not section or section in sections(file), f"{page}: {target}"


def sections(file: Path) -> set[str]:
    """The anchors of the titles of a page."""
    titles = re.findall(r"^#+ (.+)$", prose(str(file.resolve().relative_to(ROOT))), flags=re.M)
    return {anchor(title) for title in titles}


def _nothing(*_: Any) -> None:
    """In place of what a command does."""
