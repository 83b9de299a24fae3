"""The fake model server is honest: the vendors' own SDKs work with it, and it refuses what their schemas refuse."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.fakes.model_server import ModelServer, run_models, run_models_process

KEY = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}
HELLO = [{"role": "user", "content": "Hello"}]
GOOD = {
    "/v1/chat/completions": {"model": "m", "messages": HELLO, "stream": True},
    "/v1/responses": {"model": "m", "input": HELLO, "stream": True},
    "/v1/messages": {"model": "m", "messages": HELLO, "stream": True, "max_tokens": 100},
}
WRONG_KEY = [{"role": "nobody", "content": "Hello"}]
EVERYWHERE: list[dict[str, object]] = [
    {"model": 7},
    {"tools": [{"type": "function"}]},
    {"tools": "all"},
    {"stream": False},
    {"temprature": 1},
]
BAD: dict[str, list[dict[str, object]]] = {
    "/v1/chat/completions": [*EVERYWHERE, {"messages": WRONG_KEY}, {"max_completion_tokens": "many"}],
    "/v1/responses": [*EVERYWHERE, {"input": WRONG_KEY}, {"max_output_tokens": "many"}],
    "/v1/messages": [*EVERYWHERE, {"messages": WRONG_KEY}, {"max_tokens": "many"}],
}


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    async with run_models() as running:
        yield running


async def post(
    model_server: ModelServer, path: str, body: object, headers: dict[str, str] | None = None
) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, verify=False) as client:  # plain HTTP: no certificates to load
        return await client.post(model_server.url + path, json=body, headers=KEY if headers is None else headers)


async def test_openais_sdk_reads_both_of_its_streams(model_server: ModelServer) -> None:
    import openai  # here and below: to load it takes a second, in every process that collects tests

    async with openai.AsyncOpenAI(base_url=f"{model_server.url}/v1", api_key="k", max_retries=0) as client:
        chat = await client.chat.completions.create(model="m", messages=HELLO, stream=True)  # type: ignore[call-overload]
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in chat if chunk.choices])
        async with client.responses.stream(model="m", input="Hello") as stream:
            response = await stream.get_final_response()
    assert "small script" in text
    assert response.output_text == text
    assert response.status == "completed"
    assert model_server.violations == []


async def test_anthropics_sdk_reads_its_stream(model_server: ModelServer) -> None:
    import anthropic

    async with (
        anthropic.AsyncAnthropic(base_url=model_server.url, api_key="k", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=100, messages=HELLO) as stream,  # type: ignore[arg-type]
    ):
        message = await stream.get_final_message()
    assert message.stop_reason == "end_turn"
    assert "small script" in message.content[0].text  # type: ignore[union-attr]
    assert model_server.violations == []


@pytest.mark.parametrize(
    ("path", "change"), [(path, change) for path, changes in BAD.items() for change in changes], ids=str
)
async def test_what_the_schema_refuses_is_refused_and_recorded(
    model_server: ModelServer, path: str, change: dict[str, object]
) -> None:
    assert (await post(model_server, path, GOOD[path])).status_code == 200
    assert model_server.violations == []
    assert (await post(model_server, path, {**GOOD[path], **change})).status_code == 400
    assert model_server.violations != []
    assert len(model_server.turns) == 1


@pytest.mark.parametrize("path", GOOD)
async def test_nobody_is_served_without_a_key(model_server: ModelServer, path: str) -> None:
    assert (await post(model_server, path, GOOD[path], {})).status_code == 401
    assert model_server.turns == []


def test_it_runs_by_itself_counts_turns_and_fails_when_told_to() -> None:
    with run_models_process() as url, httpx2.Client(base_url=url, headers=KEY, trust_env=False, timeout=30) as client:
        path, body = next(iter(GOOD.items()))
        client.post("/control", json={"kind": 503, "times": 2})
        statuses = [client.post(path, json=body).status_code for _ in range(3)]
        named = client.post(path, json={**body, "model": "any!529"}).status_code
        happened = client.get("/control").json()
    assert (statuses, named) == ([503, 503, 200], 529)
    assert [turn["is_complete"] for turn in happened["turns"]] == [False, False, True, False]
    assert len({turn["prompt"] for turn in happened["turns"]}) == 1
    assert happened["violations"] == []
