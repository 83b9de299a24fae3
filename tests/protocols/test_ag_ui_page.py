"""The shortest program of docs/clients/ag-ui.md, as it stands there, prints what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.node_packages import CLIENTS
from tests.protocols.ag_ui_scenario import AgUiClient
from tests.protocols.node_client import TIMEOUT, start_node_client

PAGE = Path(__file__).parents[2] / "docs" / "clients" / "ag-ui.md"
PROGRAM = re.compile(r"^```js\n(.*?)^```$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"DEMO-\d+")  # which one it is depends on what else was created


@pytest.mark.skipif(not CLIENTS.is_installed(), reason=CLIENTS.missing)
def test_the_program_of_the_page_prints_what_the_page_says(
    client: AgUiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, printed = PROGRAM.findall(PAGE.read_text())[0]
    script = tmp_path / "page.mjs"
    script.write_text(program.replace("http://127.0.0.1:8321", client.server.server.url))
    monkeypatch.setenv("KEY", client.server.keys["reviewer"])
    with start_node_client(script, tmp_path, {}) as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (0, "")
    assert NUMBER.sub("DEMO-N", out) == NUMBER.sub("DEMO-N", printed)
    assert client.server.count_titled("Fix the login") == 1
