"""Tools from outside the package, as the guide shows them: written, served, approved in the chat, and in a program."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interlock.core.chat.transcript import ModelReply
from tests.databases import SqliteFile
from tests.fakes.model_server import ModelServer
from tests.interlock_server import create_keys, run_server
from tests.journeys.chat_client import ChatUser, calls, scripted_replies
from tests.journeys.shell import Shell, wait_until

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "own-tools.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
SHOP, PROGRAM, FACTORY = (text for language, text in BLOCKS if language == "python")
CONFIGURATION = next(text for language, text in BLOCKS if language == "yaml")
ENTRY_POINT = (
    next(text for language, text in BLOCKS if language == "toml").replace("project.entry-points.", "").replace('"', "")
)
CARD, MISTAKES, _ = (text for language, text in BLOCKS if language == "text")


def write_shop(folder: Path, models: str, *, tools: str = "") -> None:
    (folder / "shop.py").write_text(SHOP)
    text = CONFIGURATION.replace("shop: shop:tools", tools) if tools else CONFIGURATION
    (folder / "interlock.yaml").write_text(f"{text}models:\n  openai: {{url: {models}/v1, key: sk-none}}\n")


@contextmanager
def run_shop(folder: Path, **environ: str) -> Iterator[ChatUser]:
    database = SqliteFile(folder / "shop.db")
    keys = asyncio.run(create_keys(database.url))
    with ExitStack() as stack:
        served = stack.enter_context(run_server(database.url, folder, environ=environ))
        yield ChatUser(stack.enter_context(served.client(keys["reviewer"])))


@pytest.mark.smoke
def test_a_function_of_ones_own_is_approved_in_the_chat_and_runs_once(
    tmp_path: Path, model_server: ModelServer
) -> None:  # R2 R7 R45 R64
    write_shop(tmp_path, model_server.url)
    wish = calls(("list_orders", {}), ("refund", {"order": "A7", "amount": 12}))
    model_server.reply = scripted_replies(wish, ModelReply("Done."))
    with run_shop(tmp_path) as bob, bob.say("Refund 12 for A7", "clerk") as talk:
        shown = talk.read_until("approval_request").data["approval"]
        assert [shown["card"]["sentence"], shown["card"]["preview"]] == CARD.splitlines()
        assert shown["args"] == {"order": "A7", "amount": 12, "reason": "complaint"}
        assert not (tmp_path / "refunds.txt").exists()
        bob.decide(shown, "approve")
        talk.read_all()
        offered = {tool["name"]: tool for tool in bob.get("/api/tools")["items"] if tool["pack"] == "shop"}
    assert talk.results == [{"A7": 40, "B2": 15}, {"refunded": 12}]
    (line,) = (tmp_path / "refunds.txt").read_text().splitlines()
    assert re.fullmatch(r"A7 12 \S+", line)
    assert {name: tool["effect"] for name, tool in offered.items()} == {
        "list_orders": "read",
        "refund": "write",
        "delete_customer": "destructive",
    }


def test_a_deletion_of_ones_own_is_confirmed_in_the_conversation(
    tmp_path: Path, model_server: ModelServer
) -> None:  # R19 R64
    write_shop(tmp_path, model_server.url)
    first, second = ("delete_customer", {"name": "ann"}), ("delete_customer", {"name": "ann", "confirmed": True})
    model_server.reply = scripted_replies(calls(first), ModelReply("Shall I?"), calls(second), ModelReply("Done."))
    with run_shop(tmp_path) as bob:
        with bob.say("Delete ann", "clerk") as talk:
            talk.read_all()
        assert talk.results[0]["message"] == "Permanently delete customer 'ann'? This cannot be undone."
        with bob.say("Yes!", thread=talk.thread) as more:
            more.read_all()
    assert more.results == ["ann is deleted."]


def test_an_installed_package_brings_tools_that_settings_make(tmp_path: Path, model_server: ModelServer) -> None:  # R64
    write_shop(tmp_path, model_server.url, tools="shop: {currency: EUR}")
    installed = tmp_path / "site" / "suppliers-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: suppliers\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINT.replace("mycompany.shop", "suppliers"))
    (tmp_path / "site" / "suppliers.py").write_text(FACTORY)
    model_server.reply = scripted_replies(calls(("pay", {"name": "ACME", "amount": 5})), ModelReply("Done."))
    with run_shop(tmp_path, PYTHONPATH=str(installed.parent)) as bob, bob.say("Pay ACME", "clerk") as talk:
        shown = talk.read_until("approval_request").data["approval"]
        assert shown["card"]["sentence"] == "Pay 5 EUR to 'ACME'"
        bob.decide(shown, "approve")
        talk.read_all()
    assert talk.results == ["paid 5 EUR to ACME"]


@pytest.mark.smoke
def test_a_mistake_keeps_the_server_from_starting_and_says_what_to_change(shell: Shell) -> None:  # R64
    for wrong, said in zip(("tols", "refund_all"), MISTAKES.splitlines(), strict=True):
        write_shop(shell.folder, "http://127.0.0.1:9", tools=f"shop: shop:{wrong}")
        with (shell.folder / "shop.py").open("a") as file:
            file.write("\n\ndef refund_all() -> None: ...\n")
        done = shell.process("serve", "--port", "0")
        assert (done.code, said in done.err) == (2, True), done


def test_no_command_runs_code_of_a_folder_that_it_only_happens_to_be_in(shell: Shell) -> None:  # R64
    write_shop(shell.folder, "http://127.0.0.1:9")
    with (shell.folder / "shop.py").open("a") as file:
        file.write("\nPath('imported').touch()\n")
    assert shell("migrate").code == 0
    assert "shop, from shop:tools: not imported here" in shell("doctor").out
    assert shell("tools", "list").code == 0
    (shell.folder / "call.json").write_text('{"tool": "refund", "args": {}}')
    assert (
        "Tools of shop are imported only from a configuration file that is named."
        in shell("policy", "explain", "call.json").out
    )
    assert not (shell.folder / "imported").exists()
    assert "shop 3" in shell.process("doctor", "--config", "interlock.yaml").out
    assert (shell.folder / "imported").exists()


def test_the_same_function_waits_for_approval_in_a_program(shell: Shell) -> None:  # R64
    (shell.folder / "shop.py").write_text(SHOP)
    (shell.folder / "program.py").write_text(PROGRAM.replace("sqlite:///interlock.db", shell.url))
    assert shell("migrate").code == 0
    program = shell.program(sys.executable, "program.py", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: shell("approvals", "list", "--json").json["items"], "it waits")
    (item,) = shell("approvals", "list", "--json").json["items"]
    assert item["sentence"] == CARD.splitlines()[0]
    assert shell("approvals", "approve", item["id"]).code == 0
    printed, _ = program.communicate()
    assert printed.splitlines()[-1] == "{'refunded': 12}"
