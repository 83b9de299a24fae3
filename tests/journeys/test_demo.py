"""The demo as people try it: what they type is understood, and with a key a real model works with the same content."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.databases import Database
from tests.interlock_server import create_keys, run_server
from tests.journeys.chat_client import ChatServer, ChatUser, ThreadStream, run_models_in_thread

NO_KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"), "")


@contextmanager
def run_demo(database: Database, folder: Path, environ: Mapping[str, str]) -> Iterator[ChatServer]:
    keys = asyncio.run(create_keys(database.url))
    with (
        run_models_in_thread() as models,
        run_server(
            database.url,
            folder,
            "--demo",
            environ={**NO_KEYS, **{name: value.format(url=models.url) for name, value in environ.items()}},
        ) as server,
        server.client(keys["reviewer"]) as bob,
        server.client(keys["admin"]) as ada,
    ):
        yield ChatServer(database, folder, server, models, ChatUser(bob), ChatUser(ada), keys)


def approve_all(demo: ChatServer, talk: ThreadStream, count: int) -> list[str]:
    """Approve so many cards; gives their sentences."""
    cards = [talk.read_until("approval_request").data["approval"] for _ in range(count)]
    for card in cards:
        demo.bob.decide(card, "approve")
    talk.read_all()
    return [card["sentence"] for card in cards]


def test_the_demo_understands_what_people_type(database: Database, tmp_path: Path) -> None:  # R3 R7
    with run_demo(database, tmp_path, {}) as demo:
        assert [line for line in demo.server.output if "OPENAI_API_KEY" in line] == [
            "No key for a model is set, so a script answers in the demo's chat. To use a real model, set "
            "OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_API_KEY in the environment and start it again."
        ]
        with demo.bob.say("What's on my plate?") as talk:
            talk.read_all()
        found = [[issue.get("id") or issue["number"] for issue in result["issues"]] for result in talk.results]
        assert sorted(found, key=str) == [["DEMO-12", "DEMO-7", "DEMO-1"], [3], [7, 1]]  # they end in any order

        with demo.bob.say("Clean up the site", thread=talk.thread) as cleaning:
            sentences = approve_all(demo, cleaning, 2)
        assert sorted(sentences) == [
            "Permanently delete image 'img-6'? This cannot be undone.",
            "Permanently delete post 'old-newsletter'? This cannot be undone.",
        ]
        assert ("img-6" in demo.items("image"), "old-newsletter" in demo.items("post")) == (False, False)

        with demo.bob.say("Open a pull request from search-index to main") as opening:
            approve_all(demo, opening, 1)
        assert "number 8" in opening.text
        pull = demo.items("github_issue")["demo/shop#000008"]
        assert (pull["head"], pull["base"], pull["state"]) == ("search-index", "main", "open")

        with demo.bob.say('Rename the about page to "Who we are", please') as renaming:
            assert approve_all(demo, renaming, 1) == ["Rename page 'about' to 'Who we are'"]
        assert demo.items("page")["about"]["title"] == "Who we are"


def test_an_unknown_sentence_gets_suggestions_on_the_stream_and_in_the_thread(
    database: Database, tmp_path: Path
) -> None:  # R3
    with run_demo(database, tmp_path, {}) as demo:
        with demo.bob.say("publsh hello world") as talk:
            done = talk.read_until("done").data
        assert len(done["suggestions"]) == 3
        assert done["suggestions"][0] == 'Publish the post "hello-world"'
        [ended] = demo.bob.entries(talk.thread, "ended")
        assert ended["suggestions"] == done["suggestions"]
        with demo.bob.follow(talk.thread) as again:
            assert again.read_until("done").data["suggestions"] == done["suggestions"]
        with demo.bob.say(done["suggestions"][0], thread=talk.thread) as chosen:
            assert approve_all(demo, chosen, 1) == ["Publish post 'hello-world': everybody can read it at once"]
        assert "suggestions" not in chosen.seen[-1].data


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": "{url}/v1"}, "openai:gpt-6.1-terra"),
        ({"ANTHROPIC_API_KEY": "sk-none", "ANTHROPIC_BASE_URL": "{url}"}, "anthropic:claude-sonnet-5-5"),
    ],
    ids=["openai", "anthropic"],
)
def test_with_a_key_a_real_model_works_with_the_same_content(
    database: Database, tmp_path: Path, environ: Mapping[str, str], model: str
) -> None:  # R3 R7
    with run_demo(database, tmp_path, environ) as demo:
        assert f"{model} answers in the demo's chat." in demo.server.output
        assert not any("No key" in line for line in demo.server.output)
        with demo.bob.say("list pages") as talk:
            talk.read_all()
        assert {page["slug"] for page in talk.results[0]["pages"]} >= {"home", "about", "pricing"}
        assert {turn.model for turn in demo.models.turns} == {model.partition(":")[2]}
        assert demo.models.violations == []
        offered = str(demo.models.bodies[0]["tools"])
        assert all(name in offered for name in ("linear_read_issue", "github_open_pull_request", "agent_writer"))
