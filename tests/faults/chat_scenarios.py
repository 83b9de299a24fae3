"""Threads that are hit: a process with the loop, and a person in it who goes on from wherever an earlier life ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from interlock.app.bootstrap import build_services
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.ports import ApprovalQuery
from interlock.storage.store import SqlStore
from tests.faults.chat_agent import Chat, Outside, chat_of, delegated, person
from tests.faults.points import build_services_with_points, parse_fault_plan
from tests.faults.processes import Life, note

SENDS = 'send {"to":"a"}'
MIXED = 'look {}\nsend {"to":"a"}\nput {"k":"b"}\nsave {"k":"c"}\nsend {"to":"refused"}'


@dataclass(frozen=True)
class Seen:
    """What the person sees; `cards` are those that there ever were, since a stop that was cut off left some less."""

    thread: Thread | None
    lines: Sequence[ThreadEntry]
    cards: int

    def said(self) -> list[str]:
        return [str(line.body["text"]) for line in self.lines if line.kind == "said"]

    @property
    def idle(self) -> bool:
        return self.thread is not None and self.thread.status == "idle"

    @property
    def stopped(self) -> bool:
        return any(line.kind == "stopped" for line in self.lines)


@dataclass(frozen=True)
class Act:
    """What the person does next, once: say something, or stop; `when` they do it."""

    text: str
    when: Callable[[Seen], bool]


def at_once(_: Seen) -> bool:
    return True


def when_idle(seen: Seen) -> bool:
    return seen.idle


def when_cards(number: int, seen: Seen) -> bool:
    return seen.cards >= number


STOP = ""
SCENES: dict[str, tuple[Act, ...]] = {
    "chat": (Act(MIXED + '\nthen\nput {"k":"d"}', at_once),),
    "chat-confirm": (Act('drop {"page":"about"}', at_once), Act("yes", when_idle)),
    "chat-question": (Act('request_human_input {"question":"Which colour?"}', at_once),),
    "chat-child": (Act(f'{delegated(SENDS)}\nput {{"k":"b"}}', at_once),),
    "chat-asked-child": (Act(delegated('put {"k":"b"}', "editor"), at_once),),
    "chat-stop": (
        Act(f'put {{"k":"b"}}\n{SENDS}\n{delegated(SENDS)}', at_once),
        Act(STOP, partial(when_cards, 2)),
    ),
    "chat-amend": (Act(f"{SENDS}\n{delegated(SENDS)}", at_once), Act('put {"k":"b"}', partial(when_cards, 2))),
    "chat-flaky": (Act('# flaky\nput {"k":"b"}\nthen\nlook {}', at_once),),
}
UNDECIDED = ("chat-stop", "chat-amend")  # here nobody decides a card: the person takes them all back


def play(victim: str, life: Life, plan: str) -> None:
    asyncio.run(live(SCENES[victim], life, plan))


async def live(acts: Sequence[Act], life: Life, plan: str) -> None:
    """The person looks through a store of their own, which has no points: how often they look is chance."""
    hit = parse_fault_plan(plan)
    outside = Outside(life.folder, hit)
    if plan.startswith(("stop", "delay")):
        note(outside.late, str(os.getpid()))
    parts, eyes = build_services_with_points(life.url, hit), build_services(life.url).store
    await parts.store.open()
    await eyes.open()
    chat, stop = chat_of(parts.store, outside, life.lease), asyncio.Event()
    looping = asyncio.create_task(chat.loop.run(stop))
    await speak(chat, eyes, life.workspace, acts)
    note(life.told, "finished")
    stop.set()
    await looping
    await eyes.close()
    await parts.store.close()


async def speak(chat: Chat, eyes: SqlStore, workspace: str, acts: Sequence[Act]) -> None:
    async with eyes.watch(workspace) as watch:
        while True:
            seen = await looked(eyes, workspace)
            left = [act for act in acts if not is_done(act, seen)]
            if not left and seen.idle:
                return
            if left and left[0].when(seen):
                await do(chat, workspace, seen.thread, left[0])
            else:
                await watch.wait(0.2)


async def looked(eyes: SqlStore, workspace: str) -> Seen:
    found = await eyes.threads.list_all(workspace, (2**62, ""), 1)
    if not found:
        return Seen(None, (), 0)
    lines = await eyes.threads.entries(workspace, found[0].id)
    calls = (await eyes.list(workspace, ApprovalQuery())).items
    cards = sum(stored.approval.subject.tool == "send" for stored in calls)
    return Seen(await eyes.threads.get(workspace, found[0].id), lines, cards)


def is_done(act: Act, seen: Seen) -> bool:
    return seen.stopped if act.text == STOP else act.text in seen.said()


async def do(chat: Chat, workspace: str, thread: Thread | None, act: Act) -> None:
    doors = await chat.workspaces.services(workspace)
    if act.text == STOP and thread is not None:
        await chat.threads.stop(doors, person(workspace), thread.id)
    else:
        await chat.threads.say(doors, person(workspace), act.text, thread.id if thread else "")
