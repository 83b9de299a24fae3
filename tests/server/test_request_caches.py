"""Caches between requests, and what must not be cached."""

import json
from dataclasses import replace

import pytest

from interlock.app.gate import Gate
from interlock.core.call import propose
from interlock.core.errors import NotFound
from interlock.core.identity import Principal
from interlock.core.outcome import Proceed, Waiting
from interlock.server.http import encode_json
from interlock.server.proposals import ProposalBody, declared_spec
from interlock.server.state import ServerState

ALLOW = "version: 1\nrules:\n  - name: r\n    tools: [write_it]\n    then: allow\n"
ONE = Principal("default", "one", "agent", credential="ilk_1")
TWO = Principal("default", "two", "agent", credential="ilk_2", agents=("b", "a"))
PERSON = Principal("default", "ada", "admin")


async def test_a_gate_is_kept_for_each_set_of_owners(state: ServerState) -> None:
    doors = await state.workspaces.services("default")
    assert doors.gate_for(ONE) is doors.gate_for(replace(ONE, name="other"))
    gates = [doors.gate_for(who) for who in (ONE, TWO, PERSON)]
    assert len({id(gate) for gate in gates}) == 3
    assert doors.gate not in gates


async def test_a_kept_gate_reaches_no_call_of_another(state: ServerState) -> None:
    doors = await state.workspaces.services("default")
    body = ProposalBody(tool="write_it", args={}, run_id="run", call_id="c", effect="write")
    wanted = propose("write_it", {}, "run", "c")
    waiting = await doors.gate.check(wanted, declared_spec(body))
    assert isinstance(waiting, Waiting)
    for _ in range(2):
        with pytest.raises(NotFound):
            await doors.gate_for(ONE).get_outcome("default", waiting.approval_id)
        assert isinstance(await doors.gate_for(PERSON).get_outcome("default", waiting.approval_id), Waiting)


async def test_a_kept_gate_judges_by_the_policy_of_now(state: ServerState) -> None:
    doors = await state.workspaces.services("default")
    spec = replace(declared_spec(ProposalBody(tool="write_it", args={}, run_id="r", call_id="c")), declared=False)
    before = doors.gate_for(ONE)
    assert isinstance(await before.check(propose("write_it", {}, "run", "1"), spec), Waiting)
    await state.workspaces.put_policy("default", ALLOW, "ada")
    after = doors.gate_for(ONE)
    assert after is not before
    assert isinstance(await after.check(propose("write_it", {}, "run", "2"), spec), Proceed)


async def test_kept_gates_do_not_grow_without_end(state: ServerState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.app.workspaces.MAX_CACHED_GATES", 3)
    doors = await state.workspaces.services("default")
    made: list[Gate] = [doors.gate_for(replace(ONE, credential=f"ilk_{n}")) for n in range(10)]
    assert len({id(gate) for gate in made}) == 10
    assert len(doors._gates) <= 3


def test_what_was_declared_with_a_call_stays_with_it() -> None:
    plain = ProposalBody(tool="t", args={}, run_id="r", call_id="c", effect="read")
    assert declared_spec(plain) is declared_spec(plain.model_copy(update={"call_id": "d"}))
    others = [
        {"tool": "T"},
        {"effect": "write"},
        {"idempotent": True},
        {"description": "Hello"},
        {"secret": ("/a",)},
        {"decisions": ("approve",)},
        {"preview": ""},
        {"schema_": {}},
    ]
    specs = [declared_spec(plain.model_copy(update=other)) for other in others]
    assert all(spec.declared for spec in specs)
    assert len({(spec.sha256, str(spec.describe), str(spec.preview)) for spec in (declared_spec(plain), *specs)}) == 9
    assert declared_spec(plain, believed=False).effect == ""


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [1.5, None, True, {}], "ü": '\u2028\n"\\ \x7f'},
        [],
        "text",
        3,
        None,
        {1: "a number as a name"},
        1e300,
    ],
)
def test_answers_are_spelled_as_json_dumps_spells_them(value: object) -> None:
    assert encode_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    with pytest.raises(TypeError, match="set has no JSON form"):
        encode_json({"x": {1}})
