"""What becomes of a mail when the mail server is away, slow, or refuses it; and settings that cannot be right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock.core.errors import DeliveryFailed, Misconfigured
from interlock.core.notify.delivery import Notification, Recipient
from interlock.notify.channel import Channel, ChannelContext, DeliveryDelayed, DeliveryRejected, open_channel
from tests.fakes.mail_server import HOST, PASSWORD, MailServer, mail_server
from tests.tools.ports import reserved_port

PUBLIC = "https://interlock.example"
ADA = Recipient("ada", "ada@example.com")


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_mails_go_over_tls_to_a_server_that_is_known(tmp_path: Path, tls: str) -> None:  # R25
    with mail_server(tmp_path, tls=tls) as server:
        await make_channel(server.settings(tls=tls)).send(message())
        assert (len(server.accepted), server.tls_sessions) == (1, [True])


async def test_a_mail_server_on_this_machine_needs_neither_tls_nor_password(tmp_path: Path) -> None:  # R25
    with mail_server(tmp_path, tls="none") as server:
        settings = {"host": HOST, "port": server.port, "tls": "none", "from": "interlock@example.com"}
        await make_channel(settings).send(message())
        assert (len(server.accepted), server.tls_sessions) == (1, [False])


@pytest.mark.parametrize(
    ("says", "kind", "words"),
    [
        ({"RCPT": "450 4.2.1 mailbox busy"}, DeliveryDelayed, "temporarily rejects the address (450)"),
        ({"RCPT": "550 5.1.1 nobody here"}, DeliveryRejected, "rejected the address (550)"),
        ({"MAIL": "451 4.3.0 later"}, DeliveryDelayed, "is not ready (451)"),
        ({"MAIL": "550 5.7.1 not from you"}, DeliveryDelayed, "Check `from`"),
        ({"DATA": "452 4.3.1 disk full"}, DeliveryDelayed, "temporarily rejects the mail (452)"),
        ({"DATA": "554 5.7.1 spam"}, DeliveryRejected, "rejected the mail (554)"),
    ],
)
async def test_what_the_server_says_decides_whether_it_is_tried_again(
    server: MailServer, says: dict[str, str], kind: type[DeliveryFailed], words: str
) -> None:  # R25
    server.overrides |= says
    error = await failure(server.settings())
    assert type(error) is kind
    assert words in error.message
    assert not any(text.partition(" ")[2] in error.message for text in says.values())


async def test_wrong_password_kills_no_delivery_and_is_not_shown(server: MailServer) -> None:  # R25
    """It is wrong for every mail: all wait until somebody has put it right."""
    error = await failure(server.settings(password="a wrong one"))
    assert isinstance(error, DeliveryDelayed)
    assert error.retry_after == 60
    assert "Check both in the configuration" in error.message
    assert "a wrong one" not in error.message


async def test_a_server_whose_certificate_nobody_knows_gets_nothing(server: MailServer) -> None:  # R25
    settings = {name: value for name, value in server.settings().items() if name != "ca_file"}
    error = await failure(settings)
    assert isinstance(error, DeliveryDelayed)
    assert "certificate is not trusted" in error.message
    assert server.accepted == []


async def test_a_server_without_starttls_gets_neither_mail_nor_password(tmp_path: Path) -> None:  # R25
    with mail_server(tmp_path, tls="none") as server:
        error = await failure(server.settings())
        assert isinstance(error, DeliveryDelayed)
        assert "Check `tls`" in error.message
        assert server.accepted == []


async def test_a_server_that_is_away_is_tried_later(server: MailServer) -> None:  # R25
    with reserved_port() as port:
        error = await failure(server.settings(port=port))
    assert isinstance(error, DeliveryDelayed)
    assert "cannot be reached" in error.message


async def test_a_server_that_hangs_up_is_tried_later(server: MailServer) -> None:  # R25
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    deaf = await asyncio.start_server(hang_up, HOST, 0)
    async with deaf:
        error = await failure(server.settings(port=deaf.sockets[0].getsockname()[1]))
    assert isinstance(error, DeliveryDelayed)


async def test_of_a_list_one_who_is_refused_keeps_nobody_from_it(server: MailServer) -> None:  # R25
    server.overrides["RCPT old@example.com"] = "550 5.1.1 nobody here"
    channel = make_channel(server.settings(to=["old@example.com", "team@example.com"]))
    await channel.send(message())
    assert server.accepted[0].to == ["team@example.com"]


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (Recipient("ada"), "ada has no e-mail address"),
        (Recipient(), "has no recipient"),
        (Recipient("ada", "ada,eve@example.com"), "is not valid"),
        (Recipient("ada", "ädä@example.com"), "is not valid"),
        (Recipient("ada", "ada@example.com>\r\nRCPT TO:<eve@example.com"), "is not valid"),
    ],
)
async def test_an_address_that_is_none_is_said_and_not_tried(server: MailServer, to: Recipient, words: str) -> None:
    error = await failure(server.settings(), to)  # R25
    assert isinstance(error, DeliveryRejected)
    assert words in error.message
    assert server.accepted == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"host": None}, "host is missing"),
        ({"from": None}, "from is missing"),
        ({"from": "nobody"}, "from is not an e-mail address"),
        ({"from": "a@example.com, b@example.com"}, "from is not an e-mail address"),
        ({"from": "Interlock\r\nBcc: eve@example.com <a@example.com>"}, "from is not an e-mail address"),
        ({"reply_to": "@"}, "reply_to is not an e-mail address"),
        ({"to": "nowhere"}, "to is not an e-mail address"),
        ({"to": [1]}, "to must be an address"),
        ({"to": ["a@example.com"] * 21}, "at most 20"),
        ({"tls": "ssl"}, "tls must be one of starttls, implicit, none"),
        ({"tls": "none", "host": "smtp.example.com"}, "tls: none is only for a mail server on this machine"),
        ({"port": 0}, "port must be a number"),
        ({"port": "587"}, "port must be a number"),
        ({"user": ""}, "user and password must be set together"),
        ({"ca_file": "/nowhere.pem"}, "ca_file must be a file"),
        ({"codes": "no"}, "codes must be true or false"),
        ({"hots": "x"}, 'did you mean "host"'),
    ],
)
def test_settings_that_cannot_be_right_are_said_at_the_start(
    server: MailServer, change: dict[str, Any], words: str
) -> None:  # R26
    given = {name: value for name, value in server.settings(**change).items() if value is not None}
    with pytest.raises(Misconfigured, match="The channel ") as caught:
        make_channel(given)
    assert words in caught.value.message
    assert PASSWORD not in caught.value.message


@pytest.mark.parametrize(("tls", "port"), [("starttls", 587), ("implicit", 465), ("none", 25)])
def test_each_way_has_its_usual_port(server: MailServer, tls: str, port: int) -> None:  # R25
    given = {name: value for name, value in server.settings(tls=tls).items() if name != "port"}
    channel: Any = make_channel(given)
    assert channel._server.port == port


def make_channel(settings: dict[str, Any]) -> Channel:
    return open_channel("mail", "email", ChannelContext("mail", settings, PUBLIC))[0]


def message(to: Recipient = ADA) -> Notification:
    return Notification(
        id="one.two",
        thread="default.one",
        workspace="default",
        purpose="test",
        to=to,
        link=f"{PUBLIC}/inbox",
        at=1_800_000_000_000,
        requested_by="ada",
    )


async def failure(settings: dict[str, Any], to: Recipient = ADA) -> DeliveryFailed:
    with pytest.raises(DeliveryFailed) as caught:
        await make_channel(settings).send(message(to))
    assert PASSWORD not in str(caught.value)
    return caught.value
