"""Models of several providers, each by its unmodified SDK, against a server that checks every request by its schema."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable

import pytest

from interlock.chat.providers import LazyModel, open_model
from interlock.core.chat.transcript import (
    ChatModel,
    Delta,
    ModelReply,
    Prompt,
    PromptMessage,
    PromptTool,
    PromptUserMessage,
    ToolRequest,
    ToolResult,
)
from interlock.core.errors import Misconfigured, ModelFailed
from tests.fakes.model_server import Fault, ModelServer, RawAnswer, run_models, run_models_process

WIRE_FORMATS = ("openai", "openai-responses", "anthropic")
OFFER = PromptTool(
    "linear_create_issue",
    "Creates an issue.",
    {
        "type": "object",
        "properties": {"title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}}},
        "required": ["title"],
        "additionalProperties": False,
    },
)
THREE = 'create issues titled "A", "B" and "C"'


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    async with run_models() as running:
        yield running


@pytest.fixture(params=WIRE_FORMATS)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Open = Callable[..., ChatModel]


@pytest.fixture
def opened(model_server: ModelServer, wire: str) -> Open:
    def open_it(name: str = "scripted", *, key: str = "sk-secret", timeout: float = 30) -> ChatModel:
        return model_at(model_server.url, wire, name, key=key, timeout=timeout)

    return open_it


def model_at(url: str, wire: str, name: str = "scripted", *, key: str = "sk-secret", timeout: float = 30) -> ChatModel:
    base = url if wire == "anthropic" else f"{url}/v1"
    section = wire.partition("-")[0]
    return open_model(f"{wire}:{name}", {section: {"url": base, "key": key, "timeout": timeout}})


def make_prompt(*messages: PromptMessage | str) -> Prompt:
    said = tuple(PromptUserMessage(each) if isinstance(each, str) else each for each in messages)
    return Prompt("You help with issues.", said, (OFFER,))


async def turn(model: ChatModel, prompt: Prompt) -> tuple[str, ModelReply]:
    """The pieces put together, and the whole."""
    items = [item async for item in model.turn(prompt)]
    *pieces, last = items
    assert isinstance(last, ModelReply)
    assert all(isinstance(piece, Delta) and piece.text for piece in pieces)
    return "".join(piece.text for piece in pieces if isinstance(piece, Delta)), last


async def failure(model: ChatModel, prompt: Prompt | None = None) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await turn(model, prompt or make_prompt("Hello"))
    return caught.value


async def test_text_comes_in_pieces_and_then_as_a_whole(model_server: ModelServer, opened: Open) -> None:  # R3 R4
    model = opened()
    pieces = [item async for item in model.turn(make_prompt("Hello"))]
    text, reply = await turn(model, make_prompt("Hello"))
    assert len(pieces) > 5
    assert text == reply.text
    assert "small script" in text
    assert reply.tool_requests == ()
    assert reply.tokens > 100
    assert model_server.violations == []


async def test_instructions_and_tools_reach_the_model(model_server: ModelServer, opened: Open) -> None:
    seen: list[Prompt] = []

    def brain(prompt: Prompt) -> ModelReply:
        seen.append(prompt)
        return ModelReply("Yes.")

    model_server.reply = brain
    await turn(opened(), make_prompt("Hello"))
    assert seen[0].instructions == "You help with issues."
    assert seen[0].messages == (PromptUserMessage("Hello"),)
    assert [(offer.name, offer.description) for offer in seen[0].tools] == [(OFFER.name, OFFER.description)]
    assert seen[0].tools[0].schema["required"] == ["title"]


async def test_one_call_and_its_result_make_a_turn(model_server: ModelServer, opened: Open) -> None:  # R3
    model, said = opened(), 'create an issue titled "Fix login"'
    _, first = await turn(model, make_prompt(said))
    (wish,) = first.tool_requests
    assert (wish.tool, json.loads(wish.args)) == (OFFER.name, {"title": "Fix login"})
    result = ToolResult(wish.id, wish.tool, {"identifier": "DEMO-9", "title": "Fix login"})
    text, second = await turn(model, make_prompt(said, first, result))
    assert "identifier DEMO-9" in text
    assert second.tool_requests == ()
    assert model_server.violations == []


async def test_three_calls_keep_their_order_and_get_one_result_each(
    model_server: ModelServer, opened: Open
) -> None:  # R6
    model = opened()
    _, first = await turn(model, make_prompt(THREE))
    assert [json.loads(wish.args)["title"] for wish in first.tool_requests] == ["A", "B", "C"]
    assert len({wish.id for wish in first.tool_requests}) == 3
    declined = {"success": False, "cancelled": True, "declined": True, "status": "rejected", "reason": "Not now."}
    contents = [{"title": "A"}, declined, {"title": "C"}]
    results = [
        ToolResult(wish.id, wish.tool, content) for wish, content in zip(first.tool_requests, contents, strict=True)
    ]
    text, _ = await turn(model, make_prompt(THREE, first, *results))
    assert text.index("title A") < text.index("declined") < text.index("title C")
    assert model_server.violations == []


async def test_what_was_said_during_a_turn_comes_behind_the_results(
    model_server: ModelServer, opened: Open
) -> None:  # R55
    model, said = opened(), 'create an issue titled "A"'
    _, first = await turn(model, make_prompt(said))
    result = ToolResult(first.tool_requests[0].id, OFFER.name, {"title": "A"})
    text, _ = await turn(model, make_prompt(said, first, result, "Thanks", "And another thing"))
    assert "title A" in text
    assert model_server.violations == []


async def test_signed_thoughts_go_back_to_their_own_provider_only(wire: str) -> None:
    async with run_models(think=True) as model_server:
        name = {"openai": "gpt-5.2", "openai-responses": "gpt-5.2", "anthropic": "claude-sonnet-5-5"}[wire]
        model, said = model_at(model_server.url, wire, name), 'create an issue titled "A"'
        _, first = await turn(model, make_prompt(said))
        history = make_prompt(said, first, ToolResult(first.tool_requests[0].id, OFFER.name, {"title": "A"}))
        await turn(model, history)
        signed = "c2lnbmVk" in json.dumps(model_server.bodies[-1])
        assert signed == (wire != "openai")  # Chat Completions has no thoughts
        for other in WIRE_FORMATS:
            if other != wire:
                await turn(model_at(model_server.url, other), history)
                assert "c2lnbmVk" not in json.dumps(model_server.bodies[-1])
        assert model_server.violations == []


@pytest.mark.parametrize(
    "opaque", ["", "not JSON", "[]", '{"provider": "openai"}', '{"provider": "openai", "response": 7}']
)
async def test_a_reply_is_rebuilt_from_its_words_if_nothing_better_is_kept(
    model_server: ModelServer, opened: Open, opaque: str
) -> None:
    reply = ModelReply("I create it.", (ToolRequest("call_1", OFFER.name, '{"title": "A"}'),), opaque)
    text, _ = await turn(opened(), make_prompt("Go", reply, ToolResult("call_1", OFFER.name, {"title": "A"})))
    assert "title A" in text
    assert model_server.violations == []


async def test_arguments_that_are_no_json_do_not_break_the_conversation(
    model_server: ModelServer, opened: Open
) -> None:
    reply = ModelReply("", (ToolRequest("call_1", OFFER.name, '{"title": '),))
    failed = {"success": False, "error": "The arguments are not JSON."}
    text, _ = await turn(opened(), make_prompt("Go", reply, ToolResult("call_1", OFFER.name, failed)))
    assert "not JSON" in text
    assert model_server.violations == []


@pytest.mark.parametrize(
    ("fault", "again", "words"),
    [
        ("400", False, "did not accept"),
        ("401", False, "refused the key"),
        ("403", False, "refused the key"),
        ("404", False, "was not found"),
        ("413", False, "too long"),
        ("422", False, "did not accept"),
        ("408", True, "tried again"),
        ("409", True, "tried again"),
        ("429", True, "no more requests"),
        ("500", True, "error of its own"),
        ("502", True, "error of its own"),
        ("503", True, "Try again"),
        ("529", True, "overloaded"),
        ("cut", True, ""),
        ("end", True, "broke off"),
        ("error", True, ""),
        ("empty", True, "nothing"),
        ("refused", False, "refused to answer"),
    ],
)
async def test_every_failure_says_what_to_do_and_whether_to_try_again(
    model_server: ModelServer, opened: Open, fault: str, again: bool, words: str
) -> None:
    model_server.faults.append(Fault(fault))
    failed = await failure(opened())
    assert failed.is_retryable is again
    assert words in failed.message
    assert ":scripted" in failed.message
    assert len(model_server.turns) == 1, "the SDK must not try again by itself"
    text, _ = await turn(opened(), make_prompt("Hello"))
    assert text


async def test_a_wrong_key_is_not_repeated_to_anybody(opened: Open) -> None:
    failed = await failure(opened(key="wrong"))
    assert not failed.is_retryable
    assert "refused the key" in failed.message
    assert "wr***ng" not in failed.message


async def test_a_key_in_the_words_of_a_provider_is_hidden(model_server: ModelServer, opened: Open) -> None:
    model_server.faults.append(Fault("400"))
    failed = await failure(opened(key="Told"))
    assert "*** to fail" in failed.message


async def test_how_long_to_wait_is_handed_on(model_server: ModelServer, opened: Open) -> None:
    model_server.faults.append(Fault("429", 7))
    assert (await failure(opened())).ids == {"retry_after": 7.0}


@pytest.mark.parametrize("fault", ["hang_before", "hang_after"])
async def test_silence_ends_a_turn_and_closes_the_connection(
    model_server: ModelServer, opened: Open, fault: str
) -> None:
    model_server.faults.append(Fault(fault))
    failed = await failure(opened(timeout=0.2))
    assert failed.is_retryable
    assert "in time" in failed.message
    await wait_until(lambda: model_server.turns[0].was_closed)


async def test_a_provider_that_cannot_be_reached_may_be_tried_again(wire: str) -> None:
    failed = await failure(model_at("http://127.0.0.1:1", wire))
    assert failed.is_retryable
    assert "connection" in failed.message


async def test_closing_early_closes_the_connection(model_server: ModelServer, opened: Open) -> None:
    model_server.reply = lambda _: ModelReply("word " * 20_000)
    model_server.pause = 0.001
    items = opened().turn(make_prompt("Hello"))
    assert isinstance(await anext(items), Delta)
    await items.aclose()  # type: ignore[attr-defined]
    await wait_until(lambda: model_server.turns[0].was_closed)
    assert not model_server.turns[0].is_complete


async def test_cancelling_closes_the_connection(model_server: ModelServer, opened: Open) -> None:
    model_server.faults.append(Fault("hang_after"))
    listening = asyncio.create_task(turn(opened(), make_prompt("Hello")))
    await wait_until(lambda: bool(model_server.turns))
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    await wait_until(lambda: model_server.turns[0].was_closed)
    assert not model_server.turns[0].is_complete


async def test_a_call_that_is_cut_short_is_never_handed_on(model_server: ModelServer, opened: Open) -> None:
    for fault in ("length", "none", "end", "cut"):
        model_server.faults.append(Fault(fault))
        assert (await failure(opened(), make_prompt(THREE))).is_retryable


async def test_a_text_that_reached_the_limit_says_so(model_server: ModelServer, opened: Open) -> None:
    model_server.faults.append(Fault("length"))
    text, reply = await turn(opened(), make_prompt("Hello"))
    assert text == reply.text
    assert text.endswith("ends here.]")


async def test_an_empty_answer_to_results_is_the_end_of_the_turn(model_server: ModelServer, opened: Open) -> None:
    model, said = opened(), 'create an issue titled "A"'
    _, first = await turn(model, make_prompt(said))
    history = (said, first, ToolResult(first.tool_requests[0].id, OFFER.name, {"title": "A"}))
    model_server.faults.extend([Fault("empty"), Fault("empty")])
    text, empty = await turn(model, make_prompt(*history))
    assert (text, empty.text, empty.tool_requests) == ("", "", ())
    assert "nothing" in (await failure(model, make_prompt(*history, "Well?"))).message  # a person wants an answer
    text, _ = await turn(model, make_prompt(*history, empty, "Hello"))
    assert text
    assert model_server.violations == []


async def test_a_whole_message_of_anthropic_is_read_instead_of_a_stream(model_server: ModelServer) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": OFFER.name, "input": {"title": "A"}}
    body: dict[str, object] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    body |= {
        "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "I create it."}, call],
        "stop_sequence": None,
    }
    body |= {"usage": {"input_tokens": 100, "output_tokens": 5}}
    model_server.raw_answers.append(RawAnswer((json.dumps(body).encode(),), content_type="application/json"))
    text, reply = await turn(model_at(model_server.url, "anthropic"), make_prompt("Go"))
    assert (text, [wish.tool for wish in reply.tool_requests]) == ("I create it.", [OFFER.name])
    assert json.loads(reply.tool_requests[0].args) == {"title": "A"}
    assert len(model_server.turns) == 1


async def test_an_answer_that_is_too_long_to_keep_is_not_read_to_its_end(
    model_server: ModelServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.chat.provider_turn.MAX_ANSWER", 1_000)
    model_server.reply = lambda _: ModelReply("word " * 400)
    failed = await failure(opened())
    assert not failed.is_retryable
    assert "too long to keep" in failed.message
    model_server.raw_answers.append(RawAnswer((b"{" + b" " * 3_000_000,), content_type="application/json"))
    assert "too long to keep" in (await failure(opened())).message


async def test_ids_that_repeat_within_a_turn_or_a_thread_are_replaced(
    model_server: ModelServer, opened: Open
) -> None:  # R6
    model_server.faults.extend([Fault("same_ids"), Fault("same_ids")])
    model = opened()
    _, first = await turn(model, make_prompt(THREE))
    results = [ToolResult(wish.id, wish.tool, {}) for wish in first.tool_requests]
    history = (THREE, first, *results, THREE)
    _, second = await turn(model, make_prompt(*history))
    ids = [wish.id for wish in (*first.tool_requests, *second.tool_requests)]
    assert len(set(ids)) == 6
    await turn(
        model, make_prompt(*history, second, *[ToolResult(wish.id, wish.tool, {}) for wish in second.tool_requests])
    )
    assert model_server.violations == []


async def test_missing_ids_are_made_the_same_way_every_time(model_server: ModelServer) -> None:  # R6
    model_server.faults.extend([Fault("no_ids"), Fault("no_ids")])
    model = model_at(model_server.url, "openai")
    first, again = [(await turn(model, make_prompt(THREE)))[1] for _ in range(2)]
    assert [wish.id for wish in first.tool_requests] == [wish.id for wish in again.tool_requests]
    assert len({wish.id for wish in first.tool_requests}) == 3
    await turn(model, make_prompt(THREE, first, *[ToolResult(wish.id, wish.tool, {}) for wish in first.tool_requests]))
    assert model_server.violations == []


async def test_many_turns_leave_nothing_open(model_server: ModelServer, opened: Open) -> None:
    model = opened()
    replies = await asyncio.gather(*(turn(model, make_prompt("Hello")) for _ in range(20)))
    gc.collect()  # what was left open would warn, and warnings are errors
    assert len({text for text, _ in replies}) == 1
    assert model_server.violations == []


def test_a_model_serves_more_than_one_event_loop() -> None:
    with run_models_process() as url:
        model = model_at(url, "openai")
        texts = [asyncio.run(turn(model, make_prompt("Hello")))[0] for _ in range(2)]
    assert texts[0] == texts[1]


async def test_tools_with_names_that_no_provider_takes_can_be_called(model_server: ModelServer, opened: Open) -> None:
    offers = tuple(
        PromptTool(name, "", {"type": "object", "properties": {}}) for name in ("agent_front desk", "agent_front.desk")
    )

    def brain(prompt: Prompt) -> ModelReply:
        return ModelReply("", tuple(ToolRequest(f"call_{n}", offer.name, "{}") for n, offer in enumerate(prompt.tools)))

    model_server.reply = brain
    _, reply = await turn(opened(), Prompt("", (PromptUserMessage("Go"),), offers))
    assert [wish.tool for wish in reply.tool_requests] == ["agent_front desk", "agent_front.desk"]
    results = [ToolResult(wish.id, wish.tool, {}) for wish in reply.tool_requests]
    await turn(opened(), Prompt("", (PromptUserMessage("Go"), reply, *results, PromptUserMessage("Well?")), offers))
    assert model_server.violations == []


async def test_a_name_that_the_model_made_up_does_not_break_the_conversation(
    model_server: ModelServer, opened: Open
) -> None:
    model_server.reply = lambda _: ModelReply("", (ToolRequest("call_1", "functions.do it", "{}"),))
    _, reply = await turn(opened(), make_prompt("Go"))
    assert reply.tool_requests[0].tool == "functions.do it"
    failed = ToolResult(
        reply.tool_requests[0].id, "functions.do it", {"success": False, "error": "There is no such tool."}
    )
    model_server.reply = lambda _: ModelReply("I see.")
    for history in (reply, reply._replace(opaque="")):
        assert (await turn(opened(), make_prompt("Go", history, failed)))[0] == "I see."
    assert model_server.violations == []


async def test_a_history_without_a_result_is_refused_and_recorded(model_server: ModelServer, opened: Open) -> None:
    assert not (
        await failure(opened(), make_prompt("Go", ModelReply("", (ToolRequest("call_1", OFFER.name, "{}"),)), "Well?"))
    ).is_retryable
    assert "no result for call_1" in model_server.violations[0]


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("nothing", {}, "provider first"),
        ("opnai:gpt", {}, 'did you mean "openai"'),
        ("mistake:x", {}, "models.mistake.url"),
        ("anthropic:x", {}, "models.anthropic.key, or ANTHROPIC_API_KEY"),
        ("openai:x", {}, "models.openai.key, or OPENAI_API_KEY"),
        ("google:x", {}, "models.google.key"),
        ("ollama:x", {}, "models.ollama.url, or OLLAMA_BASE_URL"),
        ("deepseek:x", {}, "DEEPSEEK_API_KEY"),
        ("groq:x", {}, "pip install"),
        ("openai:x", {"openai": {"key": "k", "ulr": "y"}}, 'did you mean "url"'),
        ("openai:x", {"openai": {"key": "k", "timeout": "long"}}, "number of seconds"),
        ("openai:x", {"openai": {"key": "k", "timeout": 0}}, "number of seconds"),
        ("openai:x", {"openai": {"key": "k", "timeout": True}}, "number of seconds"),
    ],
)
def test_what_is_wrong_in_the_configuration_is_said(
    monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, dict[str, object]], words: str
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("OPENAI_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Misconfigured) as caught:
        open_model(name, settings)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("openai:gpt-6.1-terra", {"openai": {"key": "k"}}),
        ("anthropic:claude-sonnet-5-5", {"anthropic": {"key": "k", "max_tokens": 1000}}),
        ("google:gemini-3.8-flash", {"google": {"key": "k"}}),
        ("ollama:qwen3", {"ollama": {"url": "http://127.0.0.1:11434/v1"}}),
        ("mine:llama", {"mine": {"url": "http://127.0.0.1:8000/v1"}}),
        ("azure:gpt", {"azure": {"key": "k", "url": "https://x.openai.azure.com", "api_version": "2025-01-01"}}),
    ],
)
def test_a_model_is_opened_by_its_name_and_reaches_nothing_yet(
    name: str, settings: dict[str, dict[str, object]]
) -> None:
    assert open_model(name, settings).name == name


async def test_a_service_under_a_name_of_its_own_speaks_as_openai_does(model_server: ModelServer) -> None:
    text, _ = await turn(open_model("mine:llama", {"mine": {"url": f"{model_server.url}/v1"}}), make_prompt("Hello"))
    assert text
    assert model_server.turns[0].wire == "/v1/chat/completions"


async def test_a_model_may_be_opened_by_its_first_turn(model_server: ModelServer) -> None:
    model = LazyModel("openai:scripted", {"openai": {"url": f"{model_server.url}/v1"}})
    texts = [(await turn(model, make_prompt("Hello")))[0] for _ in range(2)]
    assert texts[0] == texts[1]
    with pytest.raises(Misconfigured):
        await turn(LazyModel("nothing", {}), make_prompt("Hello"))


async def test_repr_of_a_model_shows_no_key(opened: Open) -> None:
    assert "sk-secret" not in repr(opened())


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(100):
        while not condition():  # noqa: ASYNC110 - the server knows nothing of whoever waits
            await asyncio.sleep(0.005)
