"""What a person's answer in a front end does, and what it does not. Cases of `langchain_scenarios`."""

from __future__ import annotations

import json
from typing import Any

from interlock import Approve, Edit, Interlock, Reject, ToolSpec
from tests.frameworks.programs.langchain_support import (
    MAIL,
    Thread,
    asked,
    call,
    decided_arguments,
    ran,
    seen,
    who,
    words,
)


async def shapes(lock: Interlock) -> Any:
    new = Thread(lock, "shape new", [[MAIL]])
    old = Thread(lock, "shape old", [[MAIL]], shape="legacy")
    return {"new": await new.go(), "old": await old.go()}


async def lies(lock: Interlock) -> Any:
    """Without a reviewer, whatever comes back decides nothing."""
    thread = Thread(lock, "lies", [[MAIL]])
    await thread.go()
    said = [
        True,
        "yes",
        "approve",
        decided_arguments(type="approve"),
        [{"type": "accept", "args": None}],
        {"type": "approve"},
    ]
    waiting = [len(await thread.go(each)) for each in said]
    return {"waiting": waiting, "ran": list(ran), "asked the model": len(asked)}


async def answers(lock: Interlock) -> Any:
    """With a reviewer, either shape decides; numbers that come as texts are read by the schema."""
    edit = {"name": "send_mail", "args": {"to": "eve", "copies": 2}}
    texts = {"action": "send_mail", "args": {"to": "eve", "copies": "2"}}
    said = {
        "approve": ("hitl", decided_arguments(type="approve")),
        "one": ("hitl", {"type": "approve"}),
        "accept": ("legacy", [{"type": "accept", "args": None}]),
        "edit": ("hitl", decided_arguments(type="edit", edited_action=edit)),
        "edit as texts": ("legacy", [{"type": "edit", "args": texts}]),
        "respond": ("hitl", decided_arguments(type="respond", message="Ask Eve")),
        "response": ("legacy", [{"type": "response", "args": "Ask Eve"}]),
        "reject": ("hitl", decided_arguments(type="reject", message="Not today")),
        "ignore": ("legacy", [{"type": "ignore", "args": None}]),
    }
    found = {}
    for name, (shape, answer) in said.items():
        thread = Thread(lock, f"answer {name}", [[MAIL]], shape=shape, reviewer=who)
        await thread.go()
        left = await thread.go(answer)
        found[name] = [len(left), list(ran), thread.results]
    return found


async def bad_answers(lock: Interlock) -> Any:
    """Nothing runs by them, and the person is told; then a good one works."""
    renamed = {"name": "erase", "args": {"to": "bob"}}
    misfit = {"name": "send_mail", "args": {"to": "bob", "copies": "many"}}
    said = {
        "a text": "yes",
        "true": True,
        "two": {"decisions": [{"type": "approve"}] * 2},
        "none": {"decisions": []},
        "another tool": decided_arguments(type="edit", edited_action=renamed),
        "a misfit": decided_arguments(type="edit", edited_action=misfit),
        "another call": decided_arguments(type="approve", approval_id="somebody else's"),
        "no kind": decided_arguments(type="yes"),
    }
    found: dict[str, Any] = {}
    thread = Thread(lock, "bad answers", [[MAIL]], reviewer=who)
    await thread.go()
    for name, answer in said.items():
        (value,) = await thread.go(answer)
        found[name] = words(value)
    found["ran"] = list(ran)
    found["nobody"] = words((await thread.go(decided_arguments(type="approve"), user=""))[0])
    await thread.go(decided_arguments(type="approve"))
    return found | {"in the end": list(ran), "told": thread.results, "asked the model": len(asked)}


async def edited_elsewhere(lock: Interlock) -> Any:
    """Who approves what was shown does not approve what became of it."""
    board = call("send_mail", to="board")
    thread = Thread(lock, "edited elsewhere", [[board]], reviewer=who)
    (value,) = await thread.go()
    await thread.decide(Edit({"to": "board", "copies": 7}, seen=seen(value)), "bob")
    (again,) = await thread.go(decided_arguments(type="approve"))
    return {"ran": list(ran), "told": words(again)}


async def quorum(lock: Interlock) -> Any:
    """An answer counts once, for the one who gave it, however often the thread is resumed."""
    thread = Thread(lock, "quorum", [[call("send_mail", to="board")]], reviewer=who)
    await thread.go()
    await thread.go(decided_arguments(type="approve"), user="ada")
    again = await thread.go(decided_arguments(type="approve"), user="ada")
    looked = await thread.go("look again", user="bob")
    before = list(ran)
    await thread.go(decided_arguments(type="approve"), user="bob")
    return {"waiting": [len(again), len(looked)], "before": before, "ran": list(ran)}


async def decided_elsewhere(lock: Interlock) -> Any:
    """A click that comes too late is no answer to the next question."""
    thread = Thread(lock, "elsewhere", [[MAIL], [call("send_mail", to="eve")]], reviewer=who)
    await thread.go()
    await thread.decide(Reject("no"))
    (value,) = await thread.go(decided_arguments(type="approve"))
    return {"ran": list(ran), "waits for": value["action_requests"][0]["args"]["to"]}


async def secrets(lock: Interlock) -> Any:
    spec = ToolSpec("send_mail", "write", secret=("/to",))
    thread = Thread(lock, "secrets", [[call("send_mail", to="hunter2")]], effects={"send_mail": spec}, reviewer=who)
    (value,) = await thread.go()
    await thread.go(decided_arguments(type="approve"))
    before = list(ran)
    await thread.decide(Approve())
    await thread.every("look")
    return {"shown": json.dumps(value), "before": before, "ran": list(ran)}
