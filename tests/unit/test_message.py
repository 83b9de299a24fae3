"""The message of a channel about an approval."""

from __future__ import annotations

import pytest

from interlock.core.card import make_card
from interlock.core.notify.delivery import ApprovalView
from tests.unit.builders import pending

CARD = make_card(tool="pay", sentence="Pay 1", risk="high", facts=[], args={}, findings=())


@pytest.mark.parametrize(("status", "is_open"), [("pending", True), ("approved", False), ("expired", False)])
def test_a_topic_is_open_while_people_can_decide(status: str, is_open: bool) -> None:
    assert ApprovalView(approval=pending(), status=status, card=CARD).is_open is is_open
