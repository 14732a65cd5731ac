"""What the pages name is there."""

import re
from pathlib import Path

NAMED = re.compile(r"`((?:tests|src|docs|bench|scripts|examples|boards)/[\w/.-]+\.(?:py|md|toml))(?:::(\w+))?")
PLACEHOLDER = re.compile(r"[A-Z]{4}")
"""As in boards/NAME.toml."""


def _is_there(path: Path, test: str) -> bool:
    return path.is_file() and (not test or f"def {test}(" in path.read_text(encoding="utf-8"))


def test_files_and_tests_that_a_page_names_exist(repository: Path) -> None:
    pages = [*repository.glob("*.md"), *repository.glob("docs/*.md"), *repository.glob("bench/*.md")]
    found = [(page.name, *match.groups()) for page in pages for match in NAMED.finditer(page.read_text("utf-8"))]
    named = [(page, name, test) for page, name, test in found if not PLACEHOLDER.search(Path(name).stem)]
    assert len(named) > 50
    assert [each for each in named if not _is_there(repository / each[1], each[2])] == []
