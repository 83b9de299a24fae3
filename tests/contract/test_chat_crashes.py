"""A crash before or after any write of the chat loop: another process continues, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interlock.config.models import AgentSettings
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, Prompt
from interlock.core.decision import Acknowledgement, Approve
from tests.chat_harness import ANN, MAIN, Chat, Script, calls, chatting, wish
from tests.databases import Place
from tests.support import BOB, Clock, faults

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
    return calls(
        wish("c1", "t_look", what="x"),
        wish("c2", "t_send", to="bob"),
        wish("c3", "t_put", to="eve"),
        wish("c4", "agent_writer", task="Send it"),
        text="I begin.",
    )


def writer_reply(prompt: Prompt) -> ModelReply:
    if any(isinstance(message, ModelReply) for message in prompt.messages):
        return ModelReply("Sent.")
    return calls(wish("d1", "t_send", to="ann"))


class RepeatingModel(Script):
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


async def run_scenario(chat: Chat, clock: Clock, lifetime: ProcessLifetime) -> Thread:
    """The first process runs until its crash, the second continues; meanwhile people decide."""
    await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_put], then: allow}\n")
    first = Chat(CrashingStore(chat.store, lifetime), clock, AGENTS, chat.models, chat.effects)  # type: ignore[arg-type]
    first.desk = await first.workspaces.services("default")
    chat.loop = chat.another("second")

    async def settle() -> None:
        while not lifetime.over and await first.loop.sweep():
            await first.loop.wait_idle()
        if lifetime.over:
            chat.dead.add("first")
            await chat.settle()

    thread = await chat.threads.say(chat.desk, ANN, "Go", agent="main")
    await settle()
    while cards := await chat.cards(thread):
        await chat.desk.inbox.decide("default", cards[-1].id, Approve(Acknowledgement(cards[-1].args_sha256)), BOB)
        await settle()
    return thread


# R3, R6, R32, R46
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.postgres_nightly
async def test_whenever_a_process_dies_each_call_has_one_effect_and_one_result(
    place: Place, clock: Clock, *, after: bool
) -> None:
    number, writes = 0, MAX_WRITES
    while number < writes:
        number += 1
        lifetime = ProcessLifetime(number, after=after)
        models = {"writer": RepeatingModel(writer_reply)}
        async with chatting(place, clock, agents=AGENTS, **models) as chat:
            chat.models["main"] = RepeatingModel(main_reply)
            thread = await run_scenario(chat, clock, lifetime)
            await assert_consistent(chat, thread, number)
        if not lifetime.over:
            writes = number
    assert 15 < writes < MAX_WRITES, "the story has become longer: raise MOST"


async def assert_consistent(chat: Chat, thread: Thread, number: int) -> None:
    (child,) = await chat.store.threads.children("default", thread.id)
    kept = [(each, await chat.lines(each)) for each in (thread, child)]
    for each, lines in kept:
        said = [line.kind for line in lines]
        results = [line.body["call"] for line in lines if line.kind == "resulted"]
        assert len(results) == len(set(results)), f"{number}: a call was told twice: {said}"
        assert (said.count("replied"), said.count("ended")) == (2, 1), f"{number}: {said}"
        assert (await chat.ended(each))["status"] == "done"
    assert sorted(str(line.body["call"]) for line in kept[0][1] if line.kind == "resulted") == ["c1", "c2", "c3", "c4"]
    sent = [str(args["to"]) for args in chat.effects.of("t_send")]
    assert len(sent) == len(set(sent)), f"{number}: sent twice: {sent}"
    put = [key for (tool, _), key in zip(chat.effects.done, chat.effects.keys, strict=True) if tool == "t_put"]
    assert len(set(put)) == 1, f"{number}: under more than one key"
    for call, to in (("c2", "bob"), ("d1", "ann")):
        (line,) = [line for _, lines in kept for line in lines if line.kind == "resulted" and line.body["call"] == call]
        assert line.body["status"] == "unknown" or (line.body["status"], to in sent) == ("succeeded", True)
    shown = {line.body["approval"] for line in kept[0][1] if line.kind == "asked" and "child" in line.body}
    assert len(shown) == 1, f"{number}: the sub-agent's card does not show: {shown}"
    assert len(chat.models["main"].prompts) <= 3
    assert await faults(chat) == [], number  # type: ignore[arg-type]
