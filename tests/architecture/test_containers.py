"""The container files agree with what they copy and call; no image is built here."""

from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
LINES = (REPOSITORY / "Dockerfile").read_text().splitlines()


def test_what_is_copied_is_there_and_not_ignored() -> None:
    copied = [
        name for line in LINES if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    ]
    taken = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert [name for name in copied if not (REPOSITORY / name).exists()] == []
    assert set(copied) == taken


def test_the_page_is_built_and_what_builds_it_stays_behind() -> None:
    whole = "\n".join(LINES)
    built, _, kept = whole.rpartition("\nFROM ")
    assert "hatchling build -t wheel" in built
    assert "build.txt" in built
    assert "/opt/build" not in kept
    assert "**/node_modules" in (REPOSITORY / ".dockerignore").read_text().splitlines()


def test_the_server_runs_as_somebody_without_rights_and_is_looked_after() -> None:
    assert "USER interlock" in LINES
    assert any(line.startswith("HEALTHCHECK") and "/readyz" in line for line in LINES)
    assert LINES[-1] == 'CMD ["serve", "--host", "0.0.0.0"]'


def test_the_services_belong_together() -> None:
    services = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]
    assert set(services["interlock"]["depends_on"]) == {"database"}
    assert "@database/interlock" in services["interlock"]["environment"]["INTERLOCK_DATABASE_URL"]
    assert services["interlock"]["ports"] == ["127.0.0.1:8321:8321"]
    assert services["database"]["environment"]["POSTGRES_DB"] == "interlock"
