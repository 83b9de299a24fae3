"""Functions declared with `@tool`: what is checked when they are declared, and how the chat calls them."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

import pytest

from interlock import ToolFailed, tool
from interlock.app.executor import as_current, current_execution
from interlock.app.gate import Execution, render_preview
from interlock.chat import tool as chat_tool
from interlock.chat.tool import CONFIRMED_SCHEMA, PREVIEW_RETRY, Tool, ToolInvocation, adapt_tool, make_tool
from interlock.core.call import propose
from interlock.core.errors import CallWouldFail, InvalidRequest, Misconfigured
from interlock.core.preview import Preview
from interlock.runtime.functions import FunctionTool, find_declaration
from interlock.runtime.json_schema import validate


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Parcel:
    to: str
    sent: date


async def call(made: Tool, **args: object) -> object:
    return await made.run(ToolInvocation(args, "key-1"))


# Declaring


def test_a_declared_function_is_a_tool_with_all_its_properties() -> None:  # R64
    @tool(
        effect="write", describe="Ship to {to}", secret=["token"], idempotent=True, decisions=["approve"], name="send"
    )
    def ship(to: str, size: Size = Size.SMALL, token: str = "") -> None:
        """Ships a parcel."""

    assert isinstance(ship, FunctionTool)
    assert (ship.spec.name, ship.spec.effect, ship.spec.describe) == ("send", "write", "Ship to {to}")
    assert (ship.spec.secret, ship.spec.idempotent, ship.spec.decisions) == (("token",), True, ("approve",))
    assert ship.defaults() == {"size": "small", "token": ""}
    assert ship.description == "Ships a parcel."


def test_without_parentheses_it_is_a_tool_of_unknown_effect() -> None:  # R64
    @tool
    def ship(to: str) -> None: ...

    assert ship.spec.effect == ""


def test_a_declared_function_is_not_run_by_itself_since_nobody_would_be_asked() -> None:  # R64
    @tool(effect="write")
    def ship(to: str) -> str:
        return f"sent to {to}"

    with pytest.raises(Misconfigured, match=r"Call what lock.tool\(ship\) returns"):
        ship("ann")
    assert ship.body("ann") == "sent to ann"


def test_what_is_declared_once_is_not_declared_differently_again() -> None:  # R64
    @tool(effect="write")
    def ship(to: str) -> None: ...

    assert tool(ship) is ship
    with pytest.raises(Misconfigured, match="ship is declared as a tool already"):
        tool(ship, effect="read")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"describe": "Ship to {too}"}, 'ship: describe: there is no argument {too}; did you mean "to"?'),
        ({"describe": "Ship {"}, "ship: describe: it is no template"),
        ({"secret": ["tokn"]}, 'ship: secret: there is no argument "tokn"; did you mean "token"?'),
        ({"secret": "token/0"}, ""),
        ({"secret": ["/*/0"]}, ""),
        ({"effect": "delete"}, "effect is 'delete'; it is one of read, write, destructive"),
        ({"confirm": "mail"}, "confirm is 'mail'; it is one of chat"),
    ],
)
def test_a_mistake_is_found_where_the_function_is_declared(options: dict[str, Any], problem: str) -> None:  # R64
    def ship(to: str, token: str) -> None: ...

    if not problem:
        assert tool(ship, **options).spec.secret
        return
    with pytest.raises((Misconfigured, InvalidRequest)) as caught:
        tool(ship, **options)
    assert caught.value.message.startswith(problem)


def test_an_argument_that_no_model_could_give_is_refused() -> None:  # R64
    class Connection: ...

    def ship(to: Connection) -> Connection: ...  # type: ignore[empty-body]
    def open_connection(to: str) -> Connection: ...  # type: ignore[empty-body]

    for body in (ship, open_connection):
        body.__annotations__ = {
            name: Connection if hint == "Connection" else str for name, hint in body.__annotations__.items()
        }
    with pytest.raises(Misconfigured, match="ship: an argument has a type that has no JSON form"):
        tool(ship)
    assert tool(open_connection).returns is None


def test_a_sentence_is_made_at_once_and_not_awaited() -> None:
    async def describe(_: Mapping[str, object]) -> str:
        return "Ship"

    def ship(to: str) -> None: ...

    with pytest.raises(Misconfigured, match="describe is a plain function"):
        tool(ship, describe=describe)


def test_only_a_declaration_is_taken_for_one() -> None:
    class Anything:
        def __getattr__(self, name: str) -> object:
            return "something"

    assert find_declaration(Anything()) is None
    assert find_declaration(len) is None


def test_a_default_that_is_not_json_is_left_to_the_function() -> None:
    @tool
    def ship(to: object = inspect, at: date = date(2026, 11, 18), parcel: Parcel | None = None) -> None: ...

    assert ship.defaults() == {"at": "2026-11-18", "parcel": None}


def test_a_default_that_its_own_hint_refuses_is_shown_to_nobody() -> None:
    @tool
    def ship(to: str = "ann", cents: int = "all", size: Size = Size.LARGE) -> None: ...  # type: ignore[assignment]

    assert make_tool(ship).defaults == {"to": "ann", "size": "large"}


# In the chat


async def test_a_sync_function_runs_in_a_thread_of_its_own_with_typed_arguments() -> None:  # R64
    @tool(effect="write")
    def ship(to: str, at: date) -> Parcel:
        assert threading.current_thread() is not threading.main_thread()
        return Parcel(to, at)

    made = make_tool(ship)
    assert made.description == "Ship."
    assert await call(made, to="ann", at="2026-11-18") == {"to": "ann", "sent": "2026-11-18"}


async def test_an_async_function_is_awaited_and_so_is_what_a_sync_one_returns() -> None:  # R64
    async def answer(text: str) -> str:
        await asyncio.sleep(0)
        return text

    def indirect(text: str) -> object:
        return answer(text)

    assert await call(make_tool(tool(answer)), text="a") == "a"
    assert await call(make_tool(tool(indirect)), text="b") == "b"


async def test_arguments_that_the_hints_refuse_do_not_run_and_are_not_repeated() -> None:  # R64
    @tool(secret=["pin"])
    def unlock(pin: int) -> None:
        raise AssertionError("it ran")

    with pytest.raises(ToolFailed) as caught:
        await call(make_tool(unlock), pin="hunter2")
    assert caught.value.message.startswith("unlock: pin: Input should be a valid integer")
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("error", [StopIteration("x"), ValueError("x"), ToolFailed("x")])
async def test_what_a_function_raises_reaches_the_caller_and_ends_nothing_else(error: Exception) -> None:  # R64
    @tool
    def fail() -> None:
        raise error

    with pytest.raises((RuntimeError, ValueError, ToolFailed), match="x"):
        await call(make_tool(fail))


async def test_a_function_that_exits_does_not_end_the_server() -> None:  # R64
    @tool
    def leave() -> None:
        sys.exit(3)

    @tool
    async def leave_async() -> None:
        sys.exit(3)

    for function in (leave, leave_async):
        with pytest.raises(ToolFailed, match=r"^The tool tried to end the program\.$"):
            await call(make_tool(function))


async def test_what_ends_after_its_caller_gave_up_is_dropped_in_silence() -> None:  # R64
    """An error in the thread is a warning, and so fails the test."""
    begun, go_on = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def look(args: Mapping[str, object]) -> str:
        threads.append(threading.current_thread())
        begun.set()
        go_on.wait()
        return "late"

    made = make_tool(tool(lambda order: order, name="refund", preview=look))
    asking = asyncio.ensure_future(render_preview(made.spec, propose("refund", {"order": "A7"}, "r", "c")))
    await asyncio.to_thread(begun.wait)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    go_on.set()
    await asyncio.to_thread(threads[0].join)
    assert not threads[0].is_alive()


async def test_previews_take_a_bounded_number_of_threads_and_the_others_wait() -> None:  # R45, R64
    """A model that proposes many calls at once must not get them shown without the version that is compared."""
    go_on, begun = threading.Event(), threading.Semaphore(0)
    threads: list[threading.Thread] = []

    def look(args: Mapping[str, object]) -> str:
        threads.append(threading.current_thread())
        begun.release()
        go_on.wait()
        return "shown"

    made = make_tool(tool(lambda order: order, name="refund", preview=look))
    proposed = propose("refund", {"order": "A7"}, "r", "c")
    looks = [asyncio.create_task(render_preview(made.spec, proposed)) for _ in range(40)]
    try:
        await asyncio.to_thread(lambda: [begun.acquire() for _ in range(32)])
        await asyncio.sleep(2 * PREVIEW_RETRY)  # the others have looked for a free thread again
        assert len(threads) == 32
    finally:
        go_on.set()
    assert await asyncio.gather(*looks) == ["shown"] * 40
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert await render_preview(made.spec, proposed) == "shown"


async def test_a_preview_that_finds_no_free_thread_in_time_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:  # R64
    monkeypatch.setattr("interlock.chat.tool._preview_slots", threading.Semaphore(0))
    monkeypatch.setattr("interlock.chat.tool.PREVIEW_TIMEOUT", 0.01)
    made = make_tool(tool(lambda order: order, name="refund", preview=lambda args: "shown"))
    shown = await render_preview(made.spec, propose("refund", {"order": "A7"}, "r", "c"))
    assert shown == "No preview: it took more than 0.01 seconds."


async def test_the_idempotency_key_is_there_while_it_runs_also_in_its_thread() -> None:  # R64
    @tool(effect="write")
    def charge() -> str:
        execution = current_execution()
        return execution.idempotency_key if execution else "none"

    made = make_tool(charge)
    with as_current(Execution("id", 1, b"{}", "key-7", 0)):
        assert await call(made) == "key-7"
    assert await call(made) == "none"


def generate() -> Iterator[int]:
    yield 1


async def generate_async() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("body", [generate, generate_async])
def test_a_generator_is_no_tool_of_the_chat(body: Any) -> None:
    with pytest.raises(Misconfigured, match="yields its results"):
        make_tool(tool(body))


async def test_a_tool_that_is_confirmed_in_chat_gets_the_argument_for_it_and_the_function_does_not() -> None:  # R64
    @tool(effect="destructive", confirm="chat", preview=lambda args: f"{sorted(args)}")
    def forget(name: str) -> str:
        return name

    made = make_tool(forget)
    assert made.spec.schema is not None
    assert validate(made.spec.schema, {"name": "ann", "confirmed": True}) == ()
    assert await call(made, name="ann", confirmed=True) == "ann"
    proposed = propose("forget", {"name": "ann", "confirmed": True}, "run", "call")
    assert await render_preview(made.spec, proposed) == "['name']"


async def test_an_argument_of_that_name_is_the_functions_own() -> None:
    @tool(confirm="chat")
    def forget(confirmed: bool) -> bool:
        return confirmed

    made = make_tool(forget)
    assert (made.spec.schema or {})["properties"] != {"confirmed": CONFIRMED_SCHEMA}
    assert await call(made, confirmed=True) is True


async def test_a_preview_says_that_the_call_may_fail_or_that_it_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # R64
    async def shown(args: Mapping[str, object]) -> str:
        if args["order"] == "slow":
            await asyncio.Event().wait()
        raise ToolFailed("There is no such order.")

    monkeypatch.setattr(chat_tool, "PREVIEW_TIMEOUT", 0.01)
    made = make_tool(tool(lambda order: order, name="refund", preview=shown))
    assert made.spec.preview is not None
    for order, text in {
        "A7": "This may fail: There is no such order.",
        "slow": "No preview: it took more",
    }.items():
        assert (await render_preview(made.spec, propose("refund", {"order": order}, "r", "c"))).startswith(text)


@pytest.mark.parametrize("adapt", [lambda made: made, adapt_tool])
async def test_a_preview_of_ones_own_keeps_its_version(adapt: Callable[[Tool], Tool]) -> None:  # R45
    made = adapt(make_tool(tool(lambda order: order, name="refund", preview=lambda args: Preview("40 paid", "v1"))))
    assert made.spec.preview is not None
    shown = made.spec.preview({"order": "A7"})
    assert inspect.isawaitable(shown)
    assert await shown == Preview("40 paid", "v1")


@pytest.mark.parametrize("adapt", [lambda made: made, adapt_tool])
async def test_a_call_that_would_fail_for_certain_is_not_shown_to_people(adapt: Callable[[Tool], Tool]) -> None:  # R35
    def missing(args: Mapping[str, object]) -> str:
        raise CallWouldFail("There is no such order.")

    made = adapt(make_tool(tool(lambda order: order, name="refund", preview=missing)))
    assert made.spec.preview is not None
    shown = made.spec.preview({"order": "A7"})
    assert inspect.isawaitable(shown)
    with pytest.raises(CallWouldFail, match="no such order"):  # the gate refuses the call
        await shown
