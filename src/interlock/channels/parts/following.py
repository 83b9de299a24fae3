"""For channels that cannot change a message: whether what happened is worth another one.

The reference is what was last said: the status, and the beginning of the digest of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.core.errors import Misconfigured
from interlock.core.message import Message

TOLD = "told"  # of what is about no call
DIGITS = 12
SOMEBODY_LOOKS = ("failed", "unknown")


def follows(settings: Mapping[str, object]) -> bool:
    """The setting `follow_up`: whether people are told what became of a call."""
    wanted = settings.get("follow_up", True)
    if not isinstance(wanted, bool):
        raise Misconfigured("follow_up is true or false")
    return wanted


def said(message: Message) -> str:
    topic = message.topic
    return TOLD if topic is None else f"{topic.status}/{topic.approval.args_sha256[:DIGITS]}"


def is_news(message: Message, ref: str) -> bool:
    """A reminder, the first end, an end that somebody has to look at, other arguments, or that it waits again."""
    (before, _, digest), (now, _, digest_now) = ref.partition("/"), said(message).partition("/")
    match message.purpose:
        case "remind":
            return True
        case "ended":
            return now != before and (before == "pending" or now in SOMEBODY_LOOKS)
        case "changed":
            return (before, digest) != ("pending", digest_now)
        case _:
            return False
