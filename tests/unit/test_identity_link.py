"""Identity links: tokens by which a signed-in person links an account of a channel to themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.core.errors import NotFound
from interlock.core.identity import IDENTITY_LINK_TTL, MAX_TOKEN, IdentityLink, read_identity_link, sign_identity_link

KEY = b"k" * 32
NOW = 1_800_000_000_000
LINK_CLAIM = IdentityLink("slack", "T1:U1", NOW + IDENTITY_LINK_TTL)


def test_a_link_says_who_it_was_given_to_until_it_expires() -> None:
    token = sign_identity_link(KEY, "default", LINK_CLAIM)
    assert read_identity_link(KEY, "default", token, NOW) == LINK_CLAIM
    assert read_identity_link(KEY, "default", token, LINK_CLAIM.expires_at - 1) == LINK_CLAIM
    with pytest.raises(NotFound):
        read_identity_link(KEY, "default", token, LINK_CLAIM.expires_at)


def test_a_link_holds_for_its_key_and_workspace_alone() -> None:
    token = sign_identity_link(KEY, "default", LINK_CLAIM)
    for key, workspace in ((b"x" * 32, "default"), (KEY, "other")):
        with pytest.raises(NotFound):
            read_identity_link(key, workspace, token, NOW)


@pytest.mark.parametrize("forge", [lambda t: "", lambda t: t + "0", lambda t: "A" + t[1:], lambda t: t.split(".")[0]])
def test_an_altered_link_is_refused(forge: Callable[[str], str]) -> None:
    with pytest.raises(NotFound):
        read_identity_link(KEY, "default", forge(sign_identity_link(KEY, "default", LINK_CLAIM)), NOW)


@pytest.mark.parametrize("token", ["é.é", "." + "a" * MAX_TOKEN])
def test_a_link_that_is_too_long_or_not_ascii_is_refused(token: str) -> None:
    with pytest.raises(NotFound):
        read_identity_link(KEY, "default", token, NOW)


def test_a_link_that_is_too_long_is_refused_also_if_it_is_ours() -> None:
    with pytest.raises(NotFound):
        read_identity_link(
            KEY, "default", sign_identity_link(KEY, "default", LINK_CLAIM._replace(external_id="U" * MAX_TOKEN)), NOW
        )
