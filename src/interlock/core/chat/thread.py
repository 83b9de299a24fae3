"""Chat threads: the row with status, lease and due time, and the entries that are the thread's log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, NamedTuple

from interlock.core.canonical import canonical
from interlock.core.errors import Conflict, InvalidRequest, LeaseLost
from interlock.core.ledger.event import Event, Moment

THREAD_ID_PREFIX = "thread-"  # prefix of every thread id, before a UUID: a thread is also the run of its calls
_ID = re.compile(r"thread-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_TEXT = 100_000
MAX_TITLE = 80
TRANSITIONS: Mapping[str, frozenset[str]] = {
    "": frozenset({"ready"}),
    "ready": frozenset({"ready", "running"}),
    "running": frozenset({"running", "ready", "waiting", "idle"}),
    "waiting": frozenset({"waiting", "ready", "running"}),
    "idle": frozenset({"idle", "ready"}),
}
# The fields of an entry's body that may go into the ledger: structure, never messages or arguments.
LEDGER_FIELDS = (
    "agent",
    "call",
    "tool",
    "tools",
    "approval",
    "status",
    "model",
    "tokens",
    "attempt",
    "thread",
    "answer",
    "release_at",
    "reopened",
)


class ThreadEntry(NamedTuple):
    """One entry of a thread's log; `body` is JSON."""

    number: int
    at: int
    kind: str
    actor: str
    body: Mapping[str, object]


class NewThreadEntry(NamedTuple):
    """A thread entry to be written."""

    kind: str
    actor: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Thread:
    """A chat thread; `due_at` is when it has to be processed: for a running one, the end of its lease.

    `wake_count` counts wake-ups since the lease was acquired, so that suspending the thread misses none.
    """

    id: str
    workspace: str
    agent: str
    _: KW_ONLY
    person: str
    title: str
    parent: str
    parent_call: str
    path: tuple[str, ...]
    status: str
    entry_count: int
    due_at: int | None
    wake_count: int
    runner: str
    fence: int
    confirmation: Confirmation | None
    created_at: int
    updated_at: int


class ThreadTransition(NamedTuple):
    """A thread's next state and the entries that explain it; `wake_threads` are the threads to wake."""

    thread: Thread
    entries: tuple[NewThreadEntry, ...] = ()
    wake_threads: tuple[str, ...] = ()
    content: Mapping[str, object] | None = None


class UnfinishedReply(NamedTuple):
    """What a model has said of its reply so far: a part of its text, and the entry up to which it knew everything.

    `entry_count` is that of the thread when this was read: with a newer entry it may be no part of a reply any more.
    """

    text: str
    seen: int
    entry_count: int


class ThreadOrigin(NamedTuple):
    """The origin of a thread: its workspace, agent and person, and the call and thread that began it."""

    workspace: str
    agent: str
    person: str
    path: tuple[str, ...]
    parent: str = ""
    parent_call: str = ""


def is_thread_id(name: str) -> bool:
    """Whether the name has the form that only the chat gives; programs may well call theirs thread-7."""
    return _ID.fullmatch(name) is not None


def open_thread(thread_id: str, origin: ThreadOrigin, text: str, moment: Moment, via: str = "") -> ThreadTransition:
    check_text(text)
    now = moment.now
    title = " ".join(text.split())[:MAX_TITLE]
    thread = Thread(
        thread_id,
        origin.workspace,
        origin.agent,
        person=origin.person,
        title=title,
        parent=origin.parent,
        parent_call=origin.parent_call,
        path=origin.path,
        status="ready",
        entry_count=0,
        due_at=now,
        wake_count=0,
        runner="",
        fence=0,
        confirmation=None,
        created_at=now,
        updated_at=now,
    )
    actor = f"agent:{origin.path[-2]}" if origin.parent else origin.person
    return ThreadTransition(
        thread, (NewThreadEntry("said", actor, {"text": text, "agent": origin.agent, **_via_field(via)}),)
    )


def add_message(thread: Thread, person: str, text: str, moment: Moment, via: str = "") -> ThreadTransition:
    """Add a message of the thread's person.

    An answer to an open confirmation is a decision; every other message closes the confirmation undecided. While the
    turn that asks is still running, nobody can have read the question, so a message is no answer to it. Nor is a yes
    that came `via` an interface that does not show the question: it may answer another question of the model.
    """
    check_text(text)
    entries = [NewThreadEntry("said", person, {"text": text, **_via_field(via)})]
    confirmation, open_one = thread.confirmation, thread.confirmation
    content: dict[str, object] | None = None
    if open_one is not None and open_one.answer == "open":
        could_read = thread.status == "idle" and open_one.person == person
        answer = parse_answer(text, open_one.tool) if could_read and not via else "closed"
        confirmation = replace(open_one, answer=answer) if answer == "yes" else None
        body = {"tool": open_one.tool, "args_sha256": open_one.args_sha256, "answer": answer}
        entries.insert(0, NewThreadEntry("confirmed", person, body))
        content = {"args_sha256": open_one.args_sha256}
        content |= {} if answer == "closed" else {"text": text[:MAX_TITLE]}  # a text that answers nothing is a message
    elif open_one is not None:
        confirmation = None  # a yes that the very next turn did not use is void
    said = replace(_wake(thread, moment), confirmation=confirmation)
    return ThreadTransition(said, tuple(entries), content=content)


def _via_field(via: str) -> dict[str, object]:
    return {"via": via} if via else {}


def stop(thread: Thread, person: str, moment: Moment, said: UnfinishedReply | None = None) -> ThreadTransition:
    """End the turn, and the lease of its runner. A call that has started cannot be stopped, and is waited for.

    What the model had `said` is kept as its reply: people have read it, and may refer to it.
    """
    if thread.status == "idle":
        return ThreadTransition(thread)
    stopped = replace(_wake(thread, moment), status="ready", due_at=moment.now, runner="", fence=thread.fence + 1)
    entries = (*_unfinished_entries(thread, said), NewThreadEntry("stopped", person, {}))
    return ThreadTransition(replace(stopped, confirmation=None), entries)


def _unfinished_entries(thread: Thread, said: UnfinishedReply | None) -> tuple[NewThreadEntry, ...]:
    if said is None or said.entry_count != thread.entry_count or not said.text.strip():
        return ()
    body: dict[str, object] = {"text": said.text[:MAX_TEXT], "wishes": [], "tools": [], "seen": said.seen}
    return (NewThreadEntry("replied", f"agent:{thread.agent}", {**body, "stopped": True}),)


def retry(thread: Thread, person: str, moment: Moment) -> ThreadTransition:
    if thread.status != "idle":
        raise Conflict("This thread is at work. Wait until it is done, or stop it.", thread_id=thread.id)
    return ThreadTransition(_wake(thread, moment), (NewThreadEntry("retried", person, {}),))


def acquire(thread: Thread, runner: str, lease: int, moment: Moment, *, runner_is_dead: bool) -> ThreadTransition:
    """Acquire the lease, one process at a time.

    Taking over from a runner that is gone adds an entry, which ends its draft: that text is streamed again.
    """
    due = thread.due_at is not None and moment.now >= thread.due_at
    if not due and not (thread.status == "running" and runner_is_dead):
        raise Conflict("Somebody else is at this thread, or there is nothing to do.", thread_id=thread.id)
    taken = replace(
        thread, status="running", due_at=moment.now + lease, runner=runner, fence=thread.fence + 1, wake_count=0
    )
    entries = (NewThreadEntry("resumed", runner, {}),) if thread.status == "running" else ()
    return ThreadTransition(taken, entries)


def renew(thread: Thread, fence: int, lease: int, moment: Moment) -> ThreadTransition:
    return ThreadTransition(replace(_check_lease(thread, fence), due_at=moment.now + lease))


def append(thread: Thread, fence: int, entries: Sequence[NewThreadEntry], moment: Moment) -> ThreadTransition:
    return ThreadTransition(replace(_check_lease(thread, fence), updated_at=moment.now), tuple(entries))


def mirror(thread: Thread, entries: Sequence[NewThreadEntry], moment: Moment) -> ThreadTransition:
    """Copy entries of a child thread for readers of this one; nothing follows from them here."""
    return ThreadTransition(replace(thread, updated_at=moment.now), tuple(entries))


def request_confirmation(
    thread: Thread, fence: int, confirmation: Confirmation, entries: Sequence[NewThreadEntry], moment: Moment
) -> ThreadTransition:
    """Request a confirmation; a new one replaces the open one of the thread."""
    body = {"call": confirmation.call, "tool": confirmation.tool, "args_sha256": confirmation.args_sha256}
    asked = replace(_check_lease(thread, fence), confirmation=confirmation, updated_at=moment.now)
    return ThreadTransition(asked, (NewThreadEntry("confirming", confirmation.person, body), *entries))


def use_confirmation(thread: Thread, fence: int, call: str, tool: str, args_sha256: str) -> ThreadTransition:
    """Use the yes for this call; raises Conflict if there is none. A retry for the same call succeeds."""
    leased, confirmation = _check_lease(thread, fence), thread.confirmation
    fits = confirmation is not None and (confirmation.tool, confirmation.args_sha256) == (tool, args_sha256)
    if confirmation is None or not fits or confirmation.answer not in ("yes", f"used {call}"):
        raise Conflict("Nobody said yes to this.", thread_id=thread.id)
    return ThreadTransition(replace(leased, confirmation=replace(confirmation, answer=f"used {call}")))


def suspend(thread: Thread, fence: int, due_at: int | None, moment: Moment) -> ThreadTransition:
    """Suspend the thread until `due_at` or a wake-up; a wake-up since the lease was acquired makes it due at once."""
    leased = _check_lease(thread, fence)
    if thread.wake_count:
        return ThreadTransition(replace(leased, status="ready", due_at=moment.now, runner=""))
    return ThreadTransition(replace(leased, status="waiting", due_at=due_at, runner=""))


def end(
    thread: Thread, fence: int, seen_up_to: int, entries: Sequence[NewThreadEntry], moment: Moment
) -> ThreadTransition:
    """End the turn, unless there are entries after `seen_up_to`.

    The question of a turn that did not complete may never have been shown, so it is closed.
    """
    leased = _check_lease(thread, fence)
    if thread.entry_count != seen_up_to:
        return ThreadTransition(replace(leased, status="ready", due_at=moment.now, runner=""))
    is_done = any(entry.body.get("status") == "done" for entry in entries)
    is_open = thread.confirmation is not None and thread.confirmation.answer == "open"
    confirmation = None if is_open and not is_done else thread.confirmation
    ended = replace(leased, status="idle", due_at=None, runner="", confirmation=confirmation, updated_at=moment.now)
    return ThreadTransition(ended, tuple(entries), (thread.parent,) if thread.parent else ())


def erase(thread: Thread, by: str, moment: Moment) -> ThreadTransition:
    """Erase messages; that there was a conversation, whose and when, stays. The store deletes the entries first."""
    if thread.status != "idle":
        raise Conflict("This thread is at work. Stop it first.", thread_id=thread.id)
    erased = replace(thread, title="", confirmation=None, updated_at=moment.now)
    return ThreadTransition(erased, (NewThreadEntry("erased", by, {}),))


def ledger_events(transition: ThreadTransition) -> list[Event]:
    """One ledger entry for each thread entry, with the thread's structure only."""
    thread, events = transition.thread, []
    for number, entry in enumerate(transition.entries, thread.entry_count + 1):
        facts = {name: entry.body[name] for name in LEDGER_FIELDS if entry.body.get(name)}
        content = transition.content if entry.kind == "confirmed" else None
        data = {"thread_id": thread.id, "line": number, **facts}
        events.append(Event(f"thread_{entry.kind}", entry.actor, data, "", content))
    return events


def _wake(thread: Thread, moment: Moment) -> Thread:
    """Wake a thread: a running one goes on, and checks for new entries before it is suspended."""
    woken = replace(thread, wake_count=thread.wake_count + 1, updated_at=moment.now)
    return woken if thread.status == "running" else replace(woken, status="ready", due_at=moment.now)


def _check_lease(thread: Thread, fence: int) -> Thread:
    if thread.status != "running" or thread.fence != fence:
        raise LeaseLost("This thread was taken over or stopped.", thread_id=thread.id)
    return thread


def check_text(text: str) -> None:
    """Raise InvalidRequest for a text that cannot be a message."""
    if not text.strip() or len(text) > MAX_TEXT:
        raise InvalidRequest(f"A message has 1 to {MAX_TEXT:,} characters.")
    canonical(text)  # NUL and lone surrogates cannot be stored


# The grammar of a confirmation: a yes is one of YES_FORMS, word for word, in lower case and without punctuation.
AGREEMENTS = frozenset({"yes", "y", "yeah", "ok", "okay", "sure"})
INSTRUCTIONS = frozenset({"proceed", "go ahead", "confirm", "do it"})
YES_FORMS = (
    "{agreement}",
    "{agreement} please",
    "{agreement} {instruction}",
    "{agreement} please {instruction}",
    "{agreement} {instruction} please",
    "{instruction}",
    "{instruction} please",
    "please {instruction}",
)
# After an agreement, the tool's own verb is an instruction too: "yes, delete it" answers cms_delete_page.
VERBS = frozenset({"delete", "remove", "erase", "publish", "send", "create"})
VERB_OBJECTS = ("it", "them", "this", "that")
UNDOING_WORDS = frozenset({"undo", "un", "revert", "restore", "recall", "cancel", "stop", "not"})  # of a tool's name
YES = AGREEMENTS | INSTRUCTIONS
NO = frozenset({"no", "n", "nope", "cancel", "stop", "abort", "don't", "dont", "nevermind", "never mind"})
ConfirmationAnswer = Literal["yes", "no", "closed"]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A confirmation; `answer` is "open", "yes", or "used" with the call that it was used for.

    `args_sha256` is of the arguments without `confirmed`; `call` is the first call, whose result was the question.
    """

    person: str
    call: str
    tool: str
    args_sha256: str
    answer: str = "open"


def parse_answer(text: str, tool: str) -> ConfirmationAnswer:
    """Parse an answer to the confirmation of a tool: the whole message has to be one; a longer sentence is none."""
    words = re.sub(r"[\s.!,]+", " ", text.replace("\u2019", "'")).strip()
    if not words.isascii():  # letters that only look like those of a yes
        return "closed"
    if words.lower() in yes_sentences(tool):
        return "yes"
    return "no" if words.lower() in NO else "closed"


def yes_sentences(tool: str) -> frozenset[str]:
    """All messages that confirm a call of this tool."""
    verb = tool_verb(tool)
    named = {f"{verb} {it}" for it in VERB_OBJECTS} if verb else set[str]()
    return frozenset(
        form.format(agreement=agreement, instruction=instruction)
        for form in YES_FORMS
        for agreement in AGREEMENTS
        for instruction in (INSTRUCTIONS | named if "{agreement}" in form else INSTRUCTIONS)
    )


def tool_verb(tool: str) -> str:
    """The verb in a tool's name; empty if there is none or more than one, or a word that turns it around."""
    words = {word.lower() for word in re.findall(r"[A-Z]*[a-z]+|[A-Z]+", tool)}
    found = words & (VERBS | UNDOING_WORDS)
    return found.pop() if len(found) == 1 and found <= VERBS else ""
