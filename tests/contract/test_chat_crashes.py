"""A crash before or after any write of the chat loop: another process continues, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interlock.config.models import AgentSettings
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, Prompt
from interlock.core.decision import Acknowledgement, Approve
from tests.chat_harness import ANN, MAIN, ChatHarness, ScriptedModel, open_chat, tool_calls, tool_request
from tests.databases import Database
from tests.support import BOB, Clock, ledger_violations

WRITES = {"begin", "deny", "transition", "transition_stored", "add", "step", "write_draft"}
MAX_WRITES = 60  # writes of one story; a test says if it comes near


class SimulatedCrash(BaseException):
    """Not caught anywhere in the program: a process that raises it writes no more."""


class CrashingStore:
    """A store, or a part of one, that crashes at one of its writes."""

    def __init__(self, real: Any, lifetime: ProcessLifetime) -> None:
        self._real = real
        self._life = lifetime
        if hasattr(real, "threads"):
            self.threads = CrashingStore(real.threads, lifetime)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._life.guarded(found) if name in WRITES else found


class ProcessLifetime:
    """Crashes before or after write number `last`; 0 is never."""

    def __init__(self, last: int = 0, *, after: bool = False) -> None:
        self.last, self.after = last, after
        self.writes = 0
        self.over = False

    def guarded(self, write: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*args: Any, **more: Any) -> Any:
            self.writes += 1
            is_last = self.writes == self.last
            self.over = self.over or (is_last and not self.after)
            done = None if self.over else await write(*args, **more)
            self.over = self.over or is_last
            if self.over:
                raise SimulatedCrash
            return done

        return run


def main_reply(prompt: Prompt) -> ModelReply:
    """The same reply to the same conversation, as often as it is asked."""
    if any(isinstance(message, ModelReply) for message in prompt.messages):
        return ModelReply("All done.")
    return tool_calls(
        tool_request("c1", "t_look", what="x"),
        tool_request("c2", "t_send", to="bob"),
        tool_request("c3", "t_put", to="eve"),
        tool_request("c4", "agent_writer", task="Send it"),
        text="I begin.",
    )


def writer_reply(prompt: Prompt) -> ModelReply:
    if any(isinstance(message, ModelReply) for message in prompt.messages):
        return ModelReply("Sent.")
    return tool_calls(tool_request("d1", "t_send", to="ann"))


class RepeatingModel(ScriptedModel):
    """Does not run out of turns."""

    def __init__(self, turn: Callable[[Prompt], ModelReply]) -> None:
        super().__init__()
        self._turn = turn

    async def turn(self, prompt: Prompt) -> Any:  # type: ignore[override]
        self.turns = [self._turn]
        async for item in super().turn(prompt):
            yield item


AGENTS = {
    "main": AgentSettings(tools=MAIN.tools, agents=("writer",)),
    "writer": AgentSettings(model="writer", tools=("t",)),
}


async def run_scenario(chat: ChatHarness, clock: Clock, lifetime: ProcessLifetime) -> Thread:
    """The first process runs until its crash, the second continues; meanwhile people decide."""
    await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_put], then: allow}\n")
    first = ChatHarness(CrashingStore(chat.store, lifetime), clock, AGENTS, chat.models, chat.effects)  # type: ignore[arg-type]
    first.services = await first.workspaces.services("default")
    chat.loop = chat.make_loop("second")

    async def settle() -> None:
        while not lifetime.over and await first.loop.sweep():
            await first.loop.wait_idle()
        if lifetime.over:
            chat.dead_runners.add("first")
            await chat.run_until_idle()

    thread = await chat.threads.say(chat.services, ANN, "Go", agent="main")
    await settle()
    while cards := await chat.pending_approvals(thread):
        await chat.services.inbox.decide("default", cards[-1].id, Approve(Acknowledgement(cards[-1].args_sha256)), BOB)
        await settle()
    return thread


# R3, R6, R32, R46
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.postgres_nightly
async def test_whenever_a_process_dies_each_call_has_one_effect_and_one_result(
    database: Database, clock: Clock, *, after: bool
) -> None:
    number, writes = 0, MAX_WRITES
    while number < writes:
        number += 1
        lifetime = ProcessLifetime(number, after=after)
        models = {"writer": RepeatingModel(writer_reply)}
        async with open_chat(database, clock, agents=AGENTS, **models) as chat:
            chat.models["main"] = RepeatingModel(main_reply)
            thread = await run_scenario(chat, clock, lifetime)
            await assert_consistent(chat, thread, number)
        if not lifetime.over:
            writes = number
    assert 15 < writes < MAX_WRITES, "the story has become longer: raise MOST"


async def assert_consistent(chat: ChatHarness, thread: Thread, number: int) -> None:
    (child,) = await chat.store.threads.children("default", thread.id)
    kept = [(each, await chat.entries(each)) for each in (thread, child)]
    for each, lines in kept:
        said = [line.kind for line in lines]
        results = [line.body["call"] for line in lines if line.kind == "resulted"]
        assert len(results) == len(set(results)), f"{number}: a call was told twice: {said}"
        assert (said.count("replied"), said.count("ended")) == (2, 1), f"{number}: {said}"
        assert (await chat.last_end(each))["status"] == "done"
    assert sorted(str(line.body["call"]) for line in kept[0][1] if line.kind == "resulted") == ["c1", "c2", "c3", "c4"]
    sent = [str(args["to"]) for args in chat.effects.calls_to("t_send")]
    assert len(sent) == len(set(sent)), f"{number}: sent twice: {sent}"
    put = [key for (tool, _), key in zip(chat.effects.calls, chat.effects.keys, strict=True) if tool == "t_put"]
    assert len(set(put)) == 1, f"{number}: under more than one key"
    for call, to in (("c2", "bob"), ("d1", "ann")):
        (line,) = [line for _, lines in kept for line in lines if line.kind == "resulted" and line.body["call"] == call]
        assert line.body["status"] == "unknown" or (line.body["status"], to in sent) == ("succeeded", True)
    shown = {line.body["approval"] for line in kept[0][1] if line.kind == "asked" and "child" in line.body}
    assert len(shown) == 1, f"{number}: the sub-agent's card does not show: {shown}"
    assert len(chat.models["main"].prompts) <= 3
    assert await ledger_violations(chat) == [], number  # type: ignore[arg-type]
