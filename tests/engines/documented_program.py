"""Programs of the engines' documentation pages, and a server with the documented configuration."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.frameworks.framework_program import ROOT, TIMEOUT
from tests.interlock_server import RunningServer, create_keys, run_server
from tests.journeys.shell import wait_until

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read_blocks(name: str) -> dict[str, str]:
    """The first block of each language."""
    found = BLOCK.findall((ROOT / "docs" / "engines" / f"{name}.md").read_text())
    return dict(reversed(found))


@dataclass(frozen=True)
class DocumentedServer:
    server: RunningServer
    keys: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """Of the program."""
        return {"INTERLOCK_URL": self.server.url, "INTERLOCK_KEY": self.keys["agent"]}

    def approve(self) -> dict[str, Any]:
        """The one that waits, once it does, as a person does it over HTTP."""
        with self.server.client(self.keys["reviewer"]) as client:
            found: list[dict[str, Any]] = []

            def one() -> bool:
                found[:] = client.get("/api/approvals/pending").json()["items"]
                return bool(found)

            wait_until(one, "a call waits", TIMEOUT)
            (only,) = found
            said = {"kind": "approve", "args_sha256": only["args_sha256"]}
            client.post(f"/api/approvals/{only['id']}/decision", json=said).raise_for_status()
        return only


@contextmanager
def run_documented_server(folder: Path, configuration: str, environ: Mapping[str, str]) -> Iterator[DocumentedServer]:
    database = f"sqlite:///{folder / 'interlock.db'}"
    (folder / "interlock.yaml").write_text(configuration)
    keys = asyncio.run(create_keys(database))
    with run_server(database, folder, environ=environ) as served:
        yield DocumentedServer(served, keys)
