"""Confirmation in conversation: one question in words, to one person, about one call; only a plain yes is a yes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

YES = frozenset({"yes", "y", "yeah", "ok", "okay", "sure", "proceed", "go ahead", "confirm", "do it"})
NO = frozenset({"no", "n", "nope", "cancel", "stop", "abort", "don't", "dont", "nevermind", "never mind"})
Answer = Literal["yes", "no", "closed"]


@dataclass(frozen=True, slots=True)
class Confirmation:
    """`answer` is "open", "yes", or "used" with the call that it was used for.

    `args_sha256` is of the arguments without `confirmed`; `call` is the first call, whose result was the question.
    """

    person: str
    call: str
    tool: str
    args_sha256: str
    answer: str = "open"


def answer_to(text: str) -> Answer:
    """The whole message has to be one of the words; a sentence that contains one is something else."""
    words = re.sub(r"[\s.!,]+", " ", text.replace("\u2019", "'")).strip()
    if not words.isascii():  # letters that only look like those of a yes
        return "closed"
    if words.lower() in YES:
        return "yes"
    return "no" if words.lower() in NO else "closed"
