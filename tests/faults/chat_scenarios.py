"""Chat scenarios under fault injection: the loop, and a person who continues where an earlier process ended."""

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
from tests.faults.chat_agent import Chat, ExternalLog, build_chat, delegation, person
from tests.faults.points import build_services_with_points, parse_fault_plan
from tests.faults.processes import Scenario, append_line

SENDS = 'send {"to":"a"}'
MIXED = 'look {}\nsend {"to":"a"}\nput {"k":"b"}\nsave {"k":"c"}\nsend {"to":"refused"}'


@dataclass(frozen=True)
class ThreadView:
    """What the person sees; `cards` are those that there ever were, since a stop that was cut off left some less."""

    thread: Thread | None
    entries: Sequence[ThreadEntry]
    cards: int

    def messages(self) -> list[str]:
        return [str(line.body["text"]) for line in self.entries if line.kind == "said"]

    @property
    def idle(self) -> bool:
        return self.thread is not None and self.thread.status == "idle"

    @property
    def stopped(self) -> bool:
        return any(line.kind == "stopped" for line in self.entries)


@dataclass(frozen=True)
class PersonAction:
    """What the person does next, once: say something, or stop; `when` they do it."""

    text: str
    when: Callable[[ThreadView], bool]


def at_once(_: ThreadView) -> bool:
    return True


def when_idle(seen: ThreadView) -> bool:
    return seen.idle


def when_cards(number: int, seen: ThreadView) -> bool:
    return seen.cards >= number


STOP = ""
SCENARIOS: dict[str, tuple[PersonAction, ...]] = {
    "chat": (PersonAction(MIXED + '\nthen\nput {"k":"d"}', at_once),),
    "chat-confirm": (PersonAction('drop {"page":"about"}', at_once), PersonAction("yes", when_idle)),
    "chat-question": (PersonAction('request_human_input {"question":"Which colour?"}', at_once),),
    "chat-child": (PersonAction(f'{delegation(SENDS)}\nput {{"k":"b"}}', at_once),),
    "chat-asked-child": (PersonAction(delegation('put {"k":"b"}', "editor"), at_once),),
    "chat-stop": (
        PersonAction(f'put {{"k":"b"}}\n{SENDS}\n{delegation(SENDS)}', at_once),
        PersonAction(STOP, partial(when_cards, 2)),
    ),
    "chat-amend": (
        PersonAction(f"{SENDS}\n{delegation(SENDS)}", at_once),
        PersonAction('put {"k":"b"}', partial(when_cards, 2)),
    ),
    "chat-flaky": (PersonAction('# flaky\nput {"k":"b"}\nthen\nlook {}', at_once),),
}
WITHOUT_REVIEWER = ("chat-stop", "chat-amend")  # here nobody decides a card: the person takes them all back


def run_scenario(victim: str, scenario: Scenario, plan: str) -> None:
    asyncio.run(run_process(SCENARIOS[victim], scenario, plan))


async def run_process(actions: Sequence[PersonAction], scenario: Scenario, plan: str) -> None:
    """The person looks through a store of their own, which has no points: how often they look is chance."""
    hit = parse_fault_plan(plan)
    outside = ExternalLog(scenario.folder, hit)
    if plan.startswith(("stop", "delay")):
        append_line(outside.late, str(os.getpid()))
    services, reader = build_services_with_points(scenario.url, hit), build_services(scenario.url).store
    await services.store.open()
    await reader.open()
    chat, stop = build_chat(services.store, outside, scenario.lease), asyncio.Event()
    looping = asyncio.create_task(chat.loop.run(stop))
    await act_as_person(chat, reader, scenario.workspace, actions)
    append_line(scenario.acknowledgements, "finished")
    stop.set()
    await looping
    await reader.close()
    await services.store.close()


async def act_as_person(chat: Chat, reader: SqlStore, workspace: str, actions: Sequence[PersonAction]) -> None:
    async with reader.watch(workspace) as watch:
        while True:
            seen = await read_view(reader, workspace)
            left = [act for act in actions if not is_done(act, seen)]
            if not left and seen.idle:
                return
            if left and left[0].when(seen):
                await perform(chat, workspace, seen.thread, left[0])
            else:
                await watch.wait(0.2)


async def read_view(reader: SqlStore, workspace: str) -> ThreadView:
    found = await reader.threads.list_all(workspace, (2**62, ""), 1)
    if not found:
        return ThreadView(None, (), 0)
    lines = await reader.threads.entries(workspace, found[0].id)
    calls = (await reader.list(workspace, ApprovalQuery())).items
    cards = sum(stored.approval.subject.tool == "send" for stored in calls)
    return ThreadView(await reader.threads.get(workspace, found[0].id), lines, cards)


def is_done(act: PersonAction, seen: ThreadView) -> bool:
    return seen.stopped if act.text == STOP else act.text in seen.messages()


async def perform(chat: Chat, workspace: str, thread: Thread | None, act: PersonAction) -> None:
    services = await chat.workspaces.services(workspace)
    if act.text == STOP and thread is not None:
        await chat.threads.stop(services, person(workspace), thread.id)
    else:
        await chat.threads.say(services, person(workspace), act.text, thread.id if thread else "")
