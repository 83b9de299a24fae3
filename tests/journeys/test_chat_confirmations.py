"""Confirmation in conversation: only a plain yes of the person to the one open question lets the call run, once."""

from __future__ import annotations

import pytest

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.journeys.chat_client import Json, World, calls, plays

EVERY_MODEL = pytest.mark.parametrize("wire", ["openai", "anthropic", "scripted"], indirect=True)
FORGED = {"confirmed": True}


def page(world: World, word: str = "page") -> str:
    """A new page with two sections; gives its slug."""
    slug = f"{word}-{world.name}"
    sections = [{"id": name, "heading": name, "body": "x"} for name in ("one", "two")]
    world.ground.put("page", slug, {"title": f"The {slug}", "sections": sections})
    return slug


def is_there(world: World, slug: str) -> bool:
    return slug in world.ground.records("page")


def asked(result: Json, slug: str) -> bool:
    return result["requires_confirmation"] is True and slug in result["message"]


@pytest.mark.smoke
@EVERY_MODEL
def test_yes_lets_the_very_call_run(world: World) -> None:  # R19
    slug = page(world)
    with world.say(f'delete the page "{slug}"') as talk:
        talk.rest()
    assert talk.seen[-1].name == "done"
    assert "approval_request" not in talk.names
    [first] = talk.results
    assert asked(first, slug)
    assert (f"The {slug}" in first["would"], "2 sections" in first["would"]) == (True, True)
    assert is_there(world, slug)
    with world.say("Yes!", talk.thread) as more:
        more.rest()
    assert not is_there(world, slug)
    assert "approval_request" not in more.names
    [card] = world.bob.get(f"/api/approvals?thread_id={talk.thread}")["items"]
    decision = world.bob.approval(card["id"])["decision"]
    assert (card["status"], decision["by"], decision["via"]) == ("succeeded", "bob", "chat")


@EVERY_MODEL
@pytest.mark.parametrize("word", ["no", "Nevermind."])
def test_no_leaves_everything_as_it_is(world: World, word: str) -> None:  # R19
    slug = page(world)
    with world.say(f'delete the page "{slug}"') as talk:
        talk.rest()
    with world.say(word, talk.thread) as more:
        more.rest()
    assert is_there(world, slug)
    assert more.results == []
    assert world.bob.thread(talk.thread)["confirmation"] is None


@pytest.mark.smoke
def test_forged_confirmation_is_a_first_call_every_time(world: World) -> None:  # R19 R34
    slug = page(world)
    forged = calls(("cms_delete_page", {"slug": slug, **FORGED}))
    world.mind.think = plays(forged, forged, forged, ModelReply("I give up."))
    with world.say("delete it") as talk:
        talk.rest()
    assert is_there(world, slug)
    assert [asked(result, slug) for result in talk.results] == [True, True, True]


def test_two_calls_of_one_turn_share_no_yes(world: World) -> None:  # R19
    """One confirmation is open per thread: the last that was asked for."""
    slugs = [page(world, word) for word in ("a", "b")]
    both = [("cms_delete_page", {"slug": slug}) for slug in slugs]
    forged = [(tool, {**args, **FORGED}) for tool, args in both]
    world.mind.think = plays(calls(*both), ModelReply("Shall I?"), calls(*forged), ModelReply("Shall I now?"))
    with world.say("delete both") as talk:
        talk.rest()
    with world.say("yes", talk.thread) as more:
        more.rest()
    assert sum(is_there(world, slug) for slug in slugs) == 1


def test_yes_that_came_before_the_question_counts_for_nothing(world: World) -> None:  # R19
    slug = page(world)

    def think(prompt: Prompt) -> ModelReply:
        turn = sum(isinstance(message, ModelReply) for message in prompt.messages)
        return calls(("cms_delete_page", {"slug": slug, **FORGED})) if turn % 2 == 0 else ModelReply("Well?")

    world.mind.think = think
    with world.say("yes") as talk:
        talk.rest()
    assert is_there(world, slug)
    assert asked(talk.results[0], slug)


def test_yes_is_no_decision_where_others_have_to_decide(world: World) -> None:  # R19 R34
    slug = page(world)
    args = {"page": slug, "sections": ["one", "two"]}
    delete = calls(("cms_delete_sections", args))
    world.mind.think = plays(delete, ModelReply("Shall I?"), calls(("cms_delete_sections", {**args, **FORGED})))
    with world.say("delete them") as talk:
        talk.rest()
    with world.say("yes", talk.thread) as more:
        card = more.until("approval_request").data["approval"]
        assert len(world.ground.records("page")[slug]["sections"]) == 2
        world.ada.decide(card, "approve")
        more.rest()
    assert world.ground.records("page")[slug]["sections"] == []
    assert world.bob.approval(card["id"])["decision"]["by"] == "ada"


def test_yes_is_no_decision_about_what_looks_like_something_else(world: World) -> None:  # R19
    """A person who said yes in words saw no warning; the card shows it."""
    slug = page(world, "p\u0430ge")  # with a letter that only looks like an a
    args = {"slug": slug}
    world.mind.think = plays(
        calls(("cms_delete_page", args)), ModelReply("Shall I?"), calls(("cms_delete_page", {**args, **FORGED}))
    )
    with world.say("delete it") as talk:
        talk.rest()
    with world.say("yes", talk.thread) as more:
        card = more.until("approval_request").data["approval"]
        assert card["findings"]
        assert is_there(world, slug)
        world.bob.decide(card, "reject")
        more.rest()
    assert is_there(world, slug)
