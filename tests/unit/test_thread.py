"""Chat threads: the product of states and verbs, who may write, and whose confirmation counts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from interlock.core.chat import thread as threads
from interlock.core.chat.thread import (
    LEDGER_FIELDS,
    MAX_TEXT,
    MAX_TITLE,
    THREAD_ID_PREFIX,
    TRANSITIONS,
    Confirmation,
    NewThreadEntry,
    Thread,
    ThreadOrigin,
    ThreadTransition,
    UnfinishedReply,
    ledger_events,
    open_thread,
)
from interlock.core.errors import Conflict, Error, InvalidRequest, LeaseLost
from tests.unit.builders import NOW, at

LEASE = 30
FENCE = 3
LATER = at(NOW + 5)
RUNNER = ThreadOrigin("default", "assistant", "ann", ("assistant",))
NEW_THREAD = open_thread("thread-1", RUNNER, "Hello", at()).thread
DELETE = Confirmation("ann", "c1", "delete_page", "a" * 64)
QUESTION = (
    NewThreadEntry("resulted", "agent:assistant", {"call": "c1", "tool": "delete_page", "status": "confirming"}),
)
DONE = (NewThreadEntry("ended", "time", {"status": "done", "reason": ""}),)
THREADS = {
    "ready": replace(NEW_THREAD, entry_count=1),
    "running": replace(NEW_THREAD, entry_count=1, status="running", due_at=NOW + LEASE, runner="mine", fence=FENCE),
    "waiting": replace(NEW_THREAD, entry_count=1, status="waiting", due_at=NOW + 20, fence=FENCE),
    "idle": replace(NEW_THREAD, entry_count=1, status="idle", due_at=None, fence=FENCE),
}
RUNNING = THREADS["running"]


def claim(thread: Thread, now: int = NOW + 5, *, dead: bool = False) -> ThreadTransition:
    return threads.acquire(thread, "other", LEASE, at(now), runner_is_dead=dead)


MOVES: dict[str, Callable[[Thread], ThreadTransition]] = {
    "say": lambda thread: threads.add_message(thread, "ann", "And now?", LATER),
    "stop": lambda thread: threads.stop(thread, "ann", LATER),
    "retry": lambda thread: threads.retry(thread, "ann", LATER),
    "claim": claim,
    "claim after the lease": lambda thread: claim(thread, NOW + LEASE),
    "claim from the dead": lambda thread: claim(thread, dead=True),
    "mirror": lambda thread: threads.mirror(thread, (NewThreadEntry("asked", "agent:writer", {}),), LATER),
    "renew": lambda thread: threads.renew(thread, FENCE, LEASE, LATER),
    "append": lambda thread: threads.append(thread, FENCE, (NewThreadEntry("failed", "time", {}),), LATER),
    "confirm first": lambda thread: threads.request_confirmation(thread, FENCE, DELETE, QUESTION, LATER),
    "use a yes": lambda thread: threads.use_confirmation(
        replace(thread, confirmation=replace(DELETE, answer="yes")), FENCE, "7:c2", "delete_page", "a" * 64
    ),
    "park": lambda thread: threads.suspend(thread, FENCE, NOW + 99, LATER),
    "park, woken": lambda thread: threads.suspend(replace(thread, wake_count=1), FENCE, NOW + 99, LATER),
    "end": lambda thread: threads.end(thread, FENCE, 1, DONE, LATER),
    "end, unseen": lambda thread: threads.end(thread, FENCE, 0, DONE, LATER),
}
FORBIDDEN_MOVES = LeaseLost
# move → what becomes of a thread that is ready, running, waiting, idle: its status, or the error
TABLE: dict[str, tuple[object, object, object, object]] = {
    "say": ("ready", "running", "ready", "ready"),
    "stop": ("ready", "ready", "ready", "idle"),
    "retry": (Conflict, Conflict, Conflict, "ready"),
    "claim": ("running", Conflict, Conflict, Conflict),
    "claim after the lease": ("running", "running", "running", Conflict),
    "claim from the dead": ("running", "running", Conflict, Conflict),
    "mirror": ("ready", "running", "waiting", "idle"),
    "renew": (FORBIDDEN_MOVES, "running", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "append": (FORBIDDEN_MOVES, "running", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "confirm first": (FORBIDDEN_MOVES, "running", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "use a yes": (FORBIDDEN_MOVES, "running", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "park": (FORBIDDEN_MOVES, "waiting", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "park, woken": (FORBIDDEN_MOVES, "ready", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "end": (FORBIDDEN_MOVES, "idle", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
    "end, unseen": (FORBIDDEN_MOVES, "ready", FORBIDDEN_MOVES, FORBIDDEN_MOVES),
}
MOVES_BY_HOLDER = [name for name, row in TABLE.items() if row[0] is FORBIDDEN_MOVES]


# R3, R32
@pytest.mark.parametrize("status", THREADS)
@pytest.mark.parametrize("name", MOVES)
def test_every_status_and_move_gives_what_the_table_says(name: str, status: str) -> None:
    expected = TABLE[name][list(THREADS).index(status)]
    if isinstance(expected, type):
        assert issubclass(expected, Error)
        with pytest.raises(expected):
            MOVES[name](THREADS[status])
        return
    moved = MOVES[name](THREADS[status]).thread
    assert moved.status == expected
    assert moved.status in TRANSITIONS[status]


def test_every_transition_that_is_allowed_is_made_by_some_move() -> None:
    made = {(status, row[place]) for row in TABLE.values() for place, status in enumerate(THREADS)}
    allowed = {(status, after) for status in THREADS for after in TRANSITIONS[status]}
    assert allowed == {(status, after) for status, after in made if isinstance(after, str)}


# R32
@pytest.mark.parametrize("name", MOVES_BY_HOLDER)
def test_what_an_old_holder_writes_is_refused(name: str) -> None:
    with pytest.raises(LeaseLost):
        MOVES[name](replace(RUNNING, fence=FENCE + 1))


def test_what_others_rely_on_is_written_down() -> None:
    assert (THREAD_ID_PREFIX, MAX_TEXT, MAX_TITLE) == ("thread-", 100_000, 80)
    assert set(LEDGER_FIELDS) == {
        *("agent", "call", "tool", "tools", "approval", "status", "model", "tokens", "attempt", "thread", "answer"),
        *("release_at", "reopened"),
    }


def test_a_new_thread_is_due_at_once_and_nobody_has_it() -> None:
    assert (
        Thread(
            "thread-1",
            "default",
            "assistant",
            person="ann",
            title="Hello",
            parent="",
            parent_call="",
            path=("assistant",),
            status="ready",
            entry_count=0,
            due_at=NOW,
            wake_count=0,
            runner="",
            fence=0,
            confirmation=None,
            created_at=NOW,
            updated_at=NOW,
        )
        == NEW_THREAD
    )
    assert ThreadOrigin("default", "assistant", "ann", ("assistant",)) == (*RUNNER[:4], "", "")


def test_every_refusal_says_why_and_about_which_thread() -> None:
    refused: dict[str, Callable[[], object]] = {
        "This thread is at work. Wait until it is done, or stop it.": lambda: MOVES["retry"](RUNNING),
        "Somebody else is at this thread, or there is nothing to do.": lambda: claim(RUNNING),
        "This thread was taken over or stopped.": lambda: MOVES["append"](THREADS["idle"]),
        "Nobody said yes to this.": lambda: use_confirmation(RUNNING),
        "This thread is at work. Stop it first.": lambda: threads.erase(RUNNING, "ada", LATER),
    }
    for words, attempt in refused.items():
        with pytest.raises(Conflict) as error:
            attempt()
        assert (error.value.message, error.value.ids) == (words, {"thread_id": "thread-1"})


def test_a_message_of_the_longest_kind_is_taken_and_one_more_character_is_not() -> None:
    assert threads.add_message(THREADS["idle"], "ann", "x" * MAX_TEXT, at()).entries[0].body == {"text": "x" * MAX_TEXT}
    with pytest.raises(InvalidRequest) as error:
        threads.add_message(THREADS["idle"], "ann", "x" * (MAX_TEXT + 1), at())
    assert error.value.message == "A message has 1 to 100,000 characters."


@pytest.mark.parametrize("name", ["say", "stop", "mirror", "append", "confirm first", "end"])
def test_what_happens_in_a_thread_makes_it_new(name: str) -> None:
    assert MOVES[name](RUNNING).thread.updated_at == NOW + 5


@pytest.mark.parametrize("name", ["park", "park, woken", "end", "end, unseen", "stop"])
def test_who_lets_go_of_a_thread_has_it_no_more(name: str) -> None:
    assert MOVES[name](RUNNING).thread.runner == ""


def test_one_that_has_ended_is_due_at_no_time() -> None:
    assert MOVES["end"](RUNNING).thread.due_at is None


def test_another_try_is_a_line_of_its_own() -> None:
    assert threads.retry(THREADS["idle"], "ann", LATER).entries == (NewThreadEntry("retried", "ann", {}),)


def test_a_thread_begins_with_what_was_said() -> None:
    move = open_thread("thread-1", RUNNER, "  Delete \n the About page ", at())
    thread = move.thread
    assert thread.status in TRANSITIONS[""]
    assert (thread.title, thread.due_at, thread.entry_count, thread.fence) == ("Delete the About page", NOW, 0, 0)
    assert move.entries == (
        NewThreadEntry("said", "ann", {"text": "  Delete \n the About page ", "agent": "assistant"}),
    )


# R13
def test_a_sub_agents_thread_begins_with_what_the_agent_above_it_said() -> None:
    below = ThreadOrigin("default", "writer", "ann", ("assistant", "writer"), "thread-1", "c1")
    move = open_thread("thread-2", below, "Publish it", at())
    assert (move.thread.parent, move.thread.parent_call, move.thread.person) == ("thread-1", "c1", "ann")
    assert move.entries[0].actor == "agent:assistant"


@pytest.mark.parametrize("text", ["", " \n", "x" * (MAX_TEXT + 1), "a\x00b", "\ud800"])
def test_a_message_that_cannot_be_kept_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        open_thread("thread-1", RUNNER, text, at())
    with pytest.raises(InvalidRequest):
        threads.add_message(THREADS["idle"], "ann", text, at())


def test_what_is_said_while_it_runs_leaves_it_to_its_holder_and_wakes_it() -> None:
    said = threads.add_message(RUNNING, "ann", "Wait", LATER).thread
    assert (said.runner, said.fence, said.due_at, said.wake_count) == ("mine", FENCE, NOW + LEASE, 1)


def test_what_is_said_to_one_that_rests_makes_it_due_at_once() -> None:
    for status in ("waiting", "idle"):
        said = threads.add_message(THREADS[status], "ann", "Hi", LATER).thread
        assert (said.due_at, said.wake_count, said.updated_at) == (NOW + 5, 1, NOW + 5)


# R3
def test_stop_takes_a_running_thread_from_its_holder() -> None:
    move = threads.stop(RUNNING, "ann", LATER)
    assert (move.thread.runner, move.thread.fence, move.thread.due_at) == ("", FENCE + 1, NOW + 5)
    assert move.entries == (NewThreadEntry("stopped", "ann", {}),)
    with pytest.raises(LeaseLost):
        threads.append(move.thread, FENCE, (), LATER)


def test_stop_keeps_what_the_model_has_said_as_its_reply() -> None:
    said = UnfinishedReply("Once upon a", 1, RUNNING.entry_count)
    kept, stopped = threads.stop(RUNNING, "ann", LATER, said).entries
    body = {"text": "Once upon a", "wishes": [], "tools": [], "seen": 1, "stopped": True}
    assert kept == NewThreadEntry("replied", "agent:assistant", body)
    assert stopped == NewThreadEntry("stopped", "ann", {})


@pytest.mark.parametrize(
    "said",
    [
        UnfinishedReply("Of an earlier reply", 1, RUNNING.entry_count - 1),
        UnfinishedReply(" ", 1, RUNNING.entry_count),
    ],
)
def test_stop_keeps_no_text_that_may_be_outdated_and_no_empty_one(said: UnfinishedReply) -> None:
    assert threads.stop(RUNNING, "ann", LATER, said).entries == (NewThreadEntry("stopped", "ann", {}),)


def test_stop_cuts_a_text_that_is_too_long_to_keep() -> None:
    said = UnfinishedReply("x" * (MAX_TEXT + 1), 1, RUNNING.entry_count)
    assert len(str(threads.stop(RUNNING, "ann", LATER, said).entries[0].body["text"])) == MAX_TEXT


def test_stopping_one_that_rests_changes_nothing() -> None:
    assert threads.stop(THREADS["idle"], "ann", LATER) == ThreadTransition(THREADS["idle"])


def test_whoever_claims_it_holds_it_with_a_new_fence_and_a_lease() -> None:
    move = claim(replace(THREADS["ready"], wake_count=2))
    taken = move.thread
    assert (taken.runner, taken.fence, taken.due_at, taken.wake_count) == ("other", 1, NOW + 5 + LEASE, 0)
    assert move.entries == ()


def test_taking_over_from_one_that_is_gone_is_said() -> None:
    assert claim(RUNNING, NOW + LEASE).entries == (NewThreadEntry("resumed", "other", {}),)
    assert claim(RUNNING, dead=True).thread.fence == FENCE + 1


def test_one_that_waits_is_claimed_when_its_time_comes() -> None:
    parked = replace(THREADS["waiting"], due_at=NOW + 10)
    with pytest.raises(Conflict):
        claim(parked, NOW + 9)
    assert claim(parked, NOW + 10).thread.status == "running"


def test_parking_keeps_the_time_at_which_to_look_again() -> None:
    parked = threads.suspend(RUNNING, FENCE, NOW + 99, LATER).thread
    assert (parked.due_at, parked.runner) == (NOW + 99, "")
    assert threads.suspend(RUNNING, FENCE, None, LATER).thread.due_at is None


# R3
def test_what_happened_between_the_look_and_the_parking_is_not_missed() -> None:
    woken = threads.suspend(replace(RUNNING, wake_count=1), FENCE, None, LATER).thread
    assert (woken.status, woken.due_at) == ("ready", NOW + 5)


def test_an_end_with_something_unseen_is_no_end() -> None:
    move = threads.end(replace(RUNNING, entry_count=2), FENCE, 1, DONE, LATER)
    assert (move.thread.status, move.thread.due_at, move.entries, move.wake_threads) == ("ready", NOW + 5, (), ())


# R13
def test_the_end_of_a_sub_agent_wakes_the_thread_above() -> None:
    assert threads.end(replace(RUNNING, parent="thread-0"), FENCE, 1, DONE, LATER).wake_threads == ("thread-0",)
    assert threads.end(RUNNING, FENCE, 1, DONE, LATER).wake_threads == ()


def test_renewing_moves_the_lease_and_writes_no_line() -> None:
    move = threads.renew(RUNNING, FENCE, LEASE, LATER)
    assert (move.thread.due_at, move.entries) == (NOW + 5 + LEASE, ())


# Confirmations


def thread_with_confirmation(status: str = "idle") -> Thread:
    return replace(THREADS[status], confirmation=DELETE)


def add_message(thread: Thread, text: str, person: str = "ann") -> ThreadTransition:
    return threads.add_message(thread, person, text, LATER)


# R19
@pytest.mark.parametrize(
    ("text", "answer", "kept"), [("yes", "yes", "yes"), ("no", "no", None), ("which page?", "closed", None)]
)
def test_the_next_message_answers_the_open_question_or_closes_it(text: str, answer: str, kept: str | None) -> None:
    move = add_message(thread_with_confirmation(), text)
    confirmation = move.thread.confirmation
    assert (confirmation and confirmation.answer) == kept
    confirmed, message = move.entries
    body = {"tool": "delete_page", "args_sha256": "a" * 64, "answer": answer}
    assert confirmed == NewThreadEntry("confirmed", "ann", body)
    assert (message.kind, message.body) == ("said", {"text": text})


# R19
def test_the_yes_of_another_person_closes_it() -> None:
    move = add_message(thread_with_confirmation(), "yes", "bob")
    assert move.thread.confirmation is None
    assert move.entries[0].body["answer"] == "closed"


# R19
@pytest.mark.parametrize("status", ["ready", "running", "waiting"])
def test_a_yes_before_the_question_was_told_to_its_end_is_no_answer_to_it(status: str) -> None:
    move = add_message(thread_with_confirmation(status), "yes")
    assert move.thread.confirmation is None
    assert move.entries[0].body["answer"] == "closed"


# R19
def test_a_yes_that_was_not_used_is_over_with_the_next_message() -> None:
    given = add_message(thread_with_confirmation(), "yes").thread
    move = add_message(replace(given, status="idle"), "yes")
    assert move.thread.confirmation is None
    assert [line.kind for line in move.entries] == ["said"]


# R19
def test_a_yes_without_a_question_is_a_message_like_any_other() -> None:
    move = add_message(THREADS["idle"], "yes")
    assert (move.thread.confirmation, [line.kind for line in move.entries], move.content) == (None, ["said"], None)


# R19
def test_a_new_question_replaces_the_old_one() -> None:
    other = replace(DELETE, call="c9", args_sha256="b" * 64)
    move = threads.request_confirmation(replace(RUNNING, confirmation=DELETE), FENCE, other, QUESTION, LATER)
    assert move.thread.confirmation == other
    assert [line.kind for line in move.entries] == ["confirming", "resulted"]
    assert move.entries[0].body == {"call": "c9", "tool": "delete_page", "args_sha256": "b" * 64}


YES = replace(RUNNING, confirmation=replace(DELETE, answer="yes"))


def use_confirmation(thread: Thread, call: str = "7:c2", tool: str = "delete_page", args: str = "a" * 64) -> Thread:
    return threads.use_confirmation(thread, FENCE, call, tool, args).thread


# R19, R20
def test_a_yes_is_spent_on_one_call_and_stands_for_that_one() -> None:
    spent = use_confirmation(YES)
    assert spent.confirmation == replace(DELETE, answer="used 7:c2")
    assert use_confirmation(spent) == spent
    with pytest.raises(Conflict):
        use_confirmation(spent, "7:c3")


# R19, R20
@pytest.mark.parametrize(
    "thread",
    [RUNNING, thread_with_confirmation("running"), replace(YES, confirmation=replace(DELETE, answer="used 7:c2 "))],
)
def test_without_a_yes_there_is_nothing_to_use(thread: Thread) -> None:
    with pytest.raises(Conflict):
        use_confirmation(thread)


# R19, R20
@pytest.mark.parametrize("other", [{"tool": "delete_pages"}, {"args": "b" * 64}])
def test_a_yes_is_about_one_tool_and_its_arguments(other: dict[str, str]) -> None:
    with pytest.raises(Conflict):
        use_confirmation(YES, **other)


# R19
def test_stopping_closes_the_question() -> None:
    assert threads.stop(thread_with_confirmation("running"), "ann", LATER).thread.confirmation is None


# R19
@pytest.mark.parametrize(("status", "kept"), [("done", DELETE), ("error", None), ("limit", None), ("stopped", None)])
def test_a_question_of_a_turn_that_broke_off_is_closed(status: str, kept: Confirmation | None) -> None:
    lines = (NewThreadEntry("ended", "time", {"status": status, "reason": ""}),)
    assert threads.end(thread_with_confirmation("running"), FENCE, 1, lines, LATER).thread.confirmation == kept


# R19
def test_a_yes_outlives_an_error_so_that_the_turn_can_be_tried_again() -> None:
    lines = (NewThreadEntry("ended", "time", {"status": "error", "reason": ""}),)
    ended = threads.end(YES, FENCE, 1, lines, LATER).thread
    assert ended.confirmation == YES.confirmation
    assert threads.retry(ended, "ann", LATER).thread.confirmation == YES.confirmation


# The ledger


def test_the_ledger_is_told_of_structure_and_of_no_words() -> None:
    body = {
        "text": "secret words",
        "wishes": [["c1", "pay", '{"to": "bob"}']],
        "tools": ["pay"],
        "tokens": 7,
        "took": 1,
    }
    move = ThreadTransition(
        RUNNING,
        (
            NewThreadEntry("replied", "agent:assistant", body),
            NewThreadEntry("asked", "agent:assistant", {"approval": "id"}),
        ),
    )
    first, second = ledger_events(move)
    assert (first.kind, first.actor, first.approval_id, first.content) == (
        "thread_replied",
        "agent:assistant",
        "",
        None,
    )
    assert first.data == {"thread_id": "thread-1", "line": 2, "tools": ["pay"], "tokens": 7}
    assert second.data == {"thread_id": "thread-1", "line": 3, "approval": "id"}


# R19, R41
def test_the_ledger_keeps_what_the_person_said_to_a_question() -> None:
    confirmed, message = ledger_events(add_message(thread_with_confirmation(), "yes"))
    assert confirmed.data == {"thread_id": "thread-1", "line": 2, "tool": "delete_page", "answer": "yes"}
    assert confirmed.content == {"text": "yes", "args_sha256": "a" * 64}
    assert (message.kind, message.content) == ("thread_said", None)


# R41, R48
def test_a_message_that_answers_nothing_is_not_in_the_ledger() -> None:
    confirmed, _ = ledger_events(add_message(thread_with_confirmation(), "what is on it, of Harriet's?"))
    assert (confirmed.data["answer"], confirmed.content) == ("closed", {"args_sha256": "a" * 64})


# R41
def test_an_erased_thread_keeps_whose_it_was_and_says_who_took_the_rest() -> None:
    move = threads.erase(replace(THREADS["idle"], confirmation=DELETE), "ada", LATER)
    assert (move.thread.title, move.thread.confirmation, move.thread.person) == ("", None, "ann")
    assert move.entries == (NewThreadEntry("erased", "ada", {}),)
    assert move.thread.updated_at == LATER.now


@pytest.mark.parametrize("status", ["ready", "running", "waiting"])
def test_a_thread_at_work_is_not_erased(status: str) -> None:
    with pytest.raises(Conflict, match="Stop it first"):
        threads.erase(THREADS[status], "ada", LATER)


@pytest.mark.parametrize(
    "name", ["thread-7", "thread-", "run-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8", "", "thread-x" * 9]
)
def test_names_that_programs_choose_are_not_the_chats(name: str) -> None:
    assert not threads.is_thread_id(name)


def test_a_name_of_the_chat_is_known() -> None:
    assert threads.is_thread_id(f"{threads.THREAD_ID_PREFIX}0192f0c1-2b3d-7c4e-9f60-718293a4b5c8")
