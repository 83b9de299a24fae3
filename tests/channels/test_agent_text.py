"""In every channel the title is the server's, and what the agent says of its call is marked as the agent's."""

from __future__ import annotations

import json
from dataclasses import replace

from interlock.core.call import QUESTION_TOOL
from interlock.core.notify.delivery import ApprovalView
from interlock.notify import message_text
from interlock.notify.channels.email import approval_mail, to_html, to_plain_text
from interlock.notify.channels.pagerduty import _details
from interlock.notify.channels.teams import _envelope
from interlock.notify.channels.webhook import _card_details
from interlock.testing.channels import make_notification, make_view

DESCRIPTION, PREVIEW = "Look at the weather", "It will be sunny"
MARKS = ("Agent's description (not verified)", "Agent's preview (not verified)")


def claimed_view() -> ApprovalView:
    asked = make_view(sentence="Run delete_file: path = /tmp/x")
    return replace(asked, card=replace(asked.card, agent_description=DESCRIPTION, agent_preview=PREVIEW))


def test_a_mail_has_the_agents_words_below_the_arguments_and_never_in_its_subject() -> None:
    made = approval_mail(make_notification(about=claimed_view()), is_personal=True)
    assert made.subject == made.lead == "Run delete_file: path = /tmp/x"
    text = to_plain_text(made)
    places = [text.index(part) for part in ("Arguments:", MARKS[0], DESCRIPTION, MARKS[1], PREVIEW)]
    assert places == sorted(places)
    assert to_html(made).index(MARKS[0].replace("'", "&#x27;")) < to_html(made).index(DESCRIPTION)


def test_teams_pagerduty_and_webhooks_mark_them_too() -> None:
    card = json.dumps(_envelope(make_notification(about=claimed_view()), 20))
    assert card.index(MARKS[0]) < card.index(DESCRIPTION) < card.index(MARKS[1]) < card.index(PREVIEW)
    assert {name: _details(claimed_view())[name] for name in MARKS} == dict(
        zip(MARKS, (DESCRIPTION, PREVIEW), strict=True)
    )
    full = _card_details(claimed_view().card)
    assert (full["agent_description"], full["agent_preview"]) == (DESCRIPTION, PREVIEW)


def test_where_the_agent_says_nothing_there_is_nothing() -> None:
    assert message_text.claims(make_view()) == []
    assert "agent_description" not in _card_details(make_view().card)
    assert "unverified" not in to_plain_text(approval_mail(make_notification(), is_personal=True))


def test_the_title_of_a_question_says_who_asks() -> None:
    asked = make_view(sentence="Is your password still hunter2?")
    question = replace(asked.approval, subject=asked.approval.subject._replace(tool=QUESTION_TOOL))
    title = message_text.title(make_notification("remind", replace(asked, approval=question)))
    assert title == "Reminder: The agent asks: Is your password still hunter2?"
