"""A process that dies before or after any of its writes: another goes on, and nothing is done, said or told twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interlock.config.models import AgentSettings
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, Prompt
from interlock.core.decision import Acknowledgement, Approve
from tests.chatting import ANN, MAIN, Chat, Script, calls, chatting, wish
from tests.places import Place
from tests.support import BOB, Clock, faults

WRITES = {"begin", "deny", "transition", "transition_stored", "add", "step", "write_draft"}
MOST = 60  # writes of one story; a test says if it comes near


class Killed(BaseException):
    """Nothing in the program catches this: whoever raises it writes no more."""


class Mortal:
    """A store, or a part of one, as a process has it that dies at one of its writes."""

    def __init__(self, real: Any, life: Life) -> None:
        self._real = real
        self._life = life
        if hasattr(real, "threads"):
            self.threads = Mortal(real.threads, life)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._life.guarded(found) if name in WRITES else found


class Life:
    """Ends at write number `last`, before or after it; 0 is a long life."""

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
                raise Killed
            return done

        return run


def main(prompt: Prompt) -> ModelReply:
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


def writer(prompt: Prompt) -> ModelReply:
    if any(isinstance(message, ModelReply) for message in prompt.messages):
        return ModelReply("Sent.")
    return calls(wish("d1", "t_send", to="ann"))


class Steady(Script):
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


async def story(chat: Chat, clock: Clock, life: Life) -> Thread:
    """The first process lives as long as it may, and the second goes on after it; meanwhile people decide."""
    await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_put], then: allow}\n")
    first = Chat(Mortal(chat.store, life), clock, AGENTS, chat.models, chat.effects)  # type: ignore[arg-type]
    first.desk = await first.workspaces.services("default")
    chat.loop = chat.another("second")

    async def settle() -> None:
        while not life.over and await first.loop.sweep():
            await first.loop.wait_idle()
        if life.over:
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
    number, writes = 0, MOST
    while number < writes:
        number += 1
        life = Life(number, after=after)
        models = {"writer": Steady(writer)}
        async with chatting(place, clock, agents=AGENTS, **models) as chat:
            chat.models["main"] = Steady(main)
            thread = await story(chat, clock, life)
            await check(chat, thread, number)
        if not life.over:
            writes = number
    assert 15 < writes < MOST, "the story has become longer: raise MOST"


async def check(chat: Chat, thread: Thread, number: int) -> None:
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
