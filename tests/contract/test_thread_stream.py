"""Positions in a thread's stream: each delta is delivered once, from any position on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.stream import Drafts, Position, StreamEvent, ThreadFollower, parse_position
from interlock.core.chat.thread import (
    NewThreadEntry,
    Thread,
    ThreadOrigin,
    ThreadTransition,
    acquire,
    mirror,
    open_thread,
    suspend,
)
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Moment
from interlock.storage.tables.threads import Draft

ID = "thread-1"
BEGIN = Position()
WORDS = "One two three."
REPLY = NewThreadEntry(
    "replied", "agent:a", {"text": WORDS, "wishes": [["c1", "send", "{}"], ["c2", "send", "{}"]], "seen": 1}
)
CHILD_EVENT = NewThreadEntry(
    "decided", "time", {"call": "x", "child": "y", "approval": "id", "status": "expired", "path": ["a", "b"]}
)
FAILED = NewThreadEntry("failed", "time", {"attempt": 1, "error": "No.", "again_at": 0})
ENDED = NewThreadEntry("ended", "time", {"status": "done", "reason": ""})


class ThreadStreamHarness:
    """A thread whose model speaks in this process or in another one."""

    def __init__(self, services: AppServices) -> None:
        store = services.store
        self._threads, self._clock = store.threads, store.clock
        self.here = Drafts(store.threads.write_draft, store.announce, store.clock)
        self._elsewhere = Drafts(store.threads.write_draft, store.announce, store.clock)

    async def open(self) -> Thread:
        place = ThreadOrigin("default", "a", "ann", ("a",))
        await self._threads.add("default", ID, lambda moment: open_thread(ID, place, "Hi", moment))

        def taken(thread: Thread, moment: Moment) -> ThreadTransition:
            return acquire(thread, "runner", 30_000, moment, runner_is_dead=False)

        return await self._threads.step("default", ID, taken)

    async def write(self, *lines: NewThreadEntry) -> None:
        def step(thread: Thread, moment: Moment) -> ThreadTransition:
            return mirror(thread, lines, moment)

        await self._threads.step("default", ID, step)

    async def keep(self, line: int, words: str) -> None:
        """As another process does it."""
        await self._threads.write_draft("default", ID, Draft(line, words))

    def reader(self, thread: Thread, after: Position = BEGIN, *, here: bool = True) -> ThreadFollower:
        return ThreadFollower(self._threads, self.here if here else self._elsewhere, self._clock, thread, after)


@pytest.fixture
def stream(services: AppServices) -> ThreadStreamHarness:
    return ThreadStreamHarness(services)


def delta_texts(result: Sequence[StreamEvent]) -> str:
    return "".join(str(each.data["content"]) for each in result if each.name == "delta")


def event_names(result: Sequence[StreamEvent]) -> list[str]:
    return [each.name for each in result if each.name != "delta"]


async def test_what_comes_while_words_are_said_neither_ends_nor_repeats_them(stream: ThreadStreamHarness) -> None:  # R3
    thread = await stream.open()
    reader, result = stream.reader(thread), list[StreamEvent]()
    stream.here.begin("default", ID, 1)
    for piece, line in (("One ", None), ("two ", CHILD_EVENT), ("three.", None)):
        await stream.here.add("default", ID, piece)
        result += await reader.read_events()
        if line is not None:
            await stream.write(line)
            other = stream.reader(thread, result[-1].position, here=False)
            assert event_names(await other.read_events()) == ["approval_resolved"]
    stream.here.end("default", ID)
    await stream.write(REPLY, ENDED)
    result += await reader.read_events()
    assert delta_texts(result) == WORDS
    assert event_names(result) == ["approval_resolved", "tool_call_start", "tool_call_start", "done"]
    for number in range(len(result)):
        after = result[number - 1].position if number else BEGIN
        rest = await stream.reader(thread, after).read_events()
        assert delta_texts([*result[:number], *rest]) == WORDS, after
        assert event_names([*result[:number], *rest]) == event_names(result), after


async def test_words_of_another_process_are_told_as_they_are_kept(stream: ThreadStreamHarness) -> None:  # R3
    thread = await stream.open()
    reader = stream.reader(thread)
    assert await reader.read_events() == []
    assert reader.poll_after == 0.2  # nobody tells when another process begins to speak
    await stream.keep(1, "One ")
    first = await reader.read_events()
    await stream.keep(1, "One two ")
    second = await reader.read_events()
    assert [delta_texts(first), delta_texts(second)] == ["One ", "two "]
    await stream.write(REPLY)
    assert delta_texts(await reader.read_events()) == "three."


async def test_words_that_came_to_nothing_are_taken_back(stream: ThreadStreamHarness) -> None:  # R3
    thread = await stream.open()
    reader = stream.reader(thread)
    await stream.keep(1, "Wrong")
    result = await reader.read_events()
    await stream.write(FAILED)
    await stream.keep(1, "Wrong indeed")  # written by a process that does not know yet
    result += await reader.read_events()
    assert result[-1].data == {"content": "", "reset": True}
    for after in (BEGIN, *(each.position for each in result)):
        rest = await stream.reader(thread, after).read_events()
        assert delta_texts(rest) == ""
        assert bool(rest) == (after == result[0].position)  # readers that have them are told to drop them


async def test_words_behind_a_line_that_was_not_read_wait_for_it(stream: ThreadStreamHarness) -> None:
    thread = await stream.open()
    reader = stream.reader(thread)
    await reader.read_events()
    stream.here.begin("default", ID, 5)
    await stream.here.add("default", ID, "Of the next turn")
    assert delta_texts(await reader.read_events()) == ""
    await stream.write(REPLY, CHILD_EVENT, CHILD_EVENT, CHILD_EVENT)
    assert delta_texts(await reader.read_events()) == WORDS + "Of the next turn"


@pytest.mark.parametrize(("due", "pause"), [(None, None), (4_000, 4.0)])
async def test_nobody_looks_at_a_thread_that_rests(
    stream: ThreadStreamHarness, services: AppServices, due: int | None, pause: float | None
) -> None:  # R36
    thread = await stream.open()
    reader = stream.reader(thread)
    for _ in range(30):
        await reader.read_events()
    assert reader.poll_after == 1.0  # at work, in silence
    due_at = None if due is None else services.clock() + due
    await services.store.threads.step("default", ID, lambda held, moment: suspend(held, held.fence, due_at, moment))
    await reader.read_events()
    assert reader.poll_after == pause


@pytest.mark.parametrize("text", ["x", "1.x", "-1", "1.2.3", "1" * 16, "१"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Leave it out to begin anew"):
        parse_position(text)


def test_a_position_is_read_as_it_is_written() -> None:
    assert [str(parse_position(text)) for text in ("0", "12", "12.3")] == ["0.0", "12.0", "12.3"]
