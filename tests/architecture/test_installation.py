"""A fresh clone installs from the lock files alone, independent of later releases."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_locked_requirements_are_not_resolved_again(name: str) -> None:
    installs = [line for line in (REPOSITORY / name).read_text().splitlines() if "--require-hashes" in line]
    assert installs
    assert [line for line in installs if "--no-deps" not in line] == []


def test_the_locked_requirements_name_all_that_they_need() -> None:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
