"""A fresh clone can be installed next month as well: from the locked files alone, whatever has been released since."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_locked_requirements_are_not_resolved_again(name: str) -> None:
    installs = [line for line in (TOP / name).read_text().splitlines() if "--require-hashes" in line]
    assert installs
    assert [line for line in installs if "--no-deps" not in line] == []


def test_the_locked_requirements_name_all_that_they_need() -> None:
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
