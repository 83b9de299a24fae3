"""The mails themselves, as a real mail server takes them: what they say, how they are threaded, what they leave out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices, build_gate_and_inbox
from interlock.app.workspaces import Workspaces
from interlock.config.models import ChannelSettings, RoutingSettings, Settings
from interlock.core.decision import Acknowledgement, Reject
from interlock.core.notify.delivery import Recipient
from interlock.core.ports import User
from interlock.notify.channel import ChannelContext, open_channel
from interlock.notify.service import NotificationService, build_notification_service
from interlock.server.logs import JsonLogger
from tests.fakes.mail_server import Mail, MailServer, assert_valid_mime
from tests.support import BOB, OK, WRITE, Clock, approve, propose_pending
from tests.support import open_services as opened_parts

PUBLIC = "https://interlock.example"
MINUTE = 60_000


class MailSetup:
    """An Interlock whose only channel is mail, to ada and bob."""

    def __init__(self, services: AppServices, server: MailServer, **settings: object) -> None:
        self.services = services
        self.server = server
        self.log: list[str] = []
        given = Settings(
            channels={"mail": ChannelSettings("email", server.settings(**settings))},
            routing=RoutingSettings(default_channel="mail"),
        )
        given = replace(given, server=replace(given.server, public_url=PUBLIC))
        self.workspaces = Workspaces(services.store, lambda policy: build_gate_and_inbox(services.store, policy), {})
        self.notifications: NotificationService = build_notification_service(
            given, services.store, self.workspaces, JsonLogger(services.clock, "none", self.log.append)
        )
        self.dispatcher = self.notifications.make_dispatcher()

    async def sweep(self) -> int:
        await self.workspaces.refresh("default")
        return await self.dispatcher.sweep()

    async def people(self, *names: str) -> None:
        for name in names:
            user = User(name, "reviewer", teams=frozenset({"finance"}), email=f"{name}@example.com")
            await self.services.store.put_user("default", user, "ada")
        await self.sweep()


@pytest.fixture
async def services(tmp_path: Path, clock: Clock) -> AsyncIterator[AppServices]:
    async with opened_parts(tmp_path / "interlock.db", clock) as doors:
        yield doors


@pytest.fixture
async def mailing(services: AppServices, server: MailServer) -> MailSetup:
    made = MailSetup(services, server)
    await made.people("ada", "bob")
    return made


async def test_everybody_who_may_decide_gets_a_mail_of_their_own(mailing: MailSetup) -> None:  # R25
    approval_id = await propose_pending(mailing.services)
    assert await mailing.sweep() == 2
    [ada], [bob] = mailing.server.mails_to("ada@example.com"), mailing.server.mails_to("bob@example.com")
    for mail in (ada, bob):
        assert_valid_mime(mail)
    head = ada.parsed
    assert head["Subject"] == "Delete /tmp/x"
    assert head["From"] == "Interlock <interlock@example.com>"
    assert (head["To"], ada.sender) == ("ada@example.com", "interlock@example.com")
    assert (head["Auto-Submitted"], head["X-Auto-Response-Suppress"]) == ("auto-generated", "All")
    assert head["Date"] == "Fri, 15 Jan 2027 08:00:00 +0000"
    assert find_link(ada).startswith(f"{PUBLIC}/a/{approval_id}?t=default.")
    assert find_link(ada) != find_link(bob)
    assert head["Message-ID"] != bob.parsed["Message-ID"]


async def test_text_and_html_say_the_same(mailing: MailSetup) -> None:  # R25
    args = {"path": "/srv/a & b/<old>", "note": "two words"}
    await propose_pending(mailing.services, args=args, agent="tidy", requester="rita")
    await mailing.sweep()
    [mail] = mailing.server.mails_to("ada@example.com")
    shown = HtmlReader.parse(mail)
    for said in (
        "Delete /srv/a & b/<old>",
        "You are receiving this because you may decide it.",
        "high",
        "tidy",
        "rita",
        "path",
        "two words",
        "until 2027-01-16 08:00 UTC",
        "Forwarding this mail does not let anyone else decide.",
    ):
        assert said in mail.text, said
        assert said in shown.text, said
    assert shown.links == [find_link(mail)]


async def test_nothing_in_a_mail_runs_loads_or_submits(mailing: MailSetup) -> None:  # R25
    await propose_pending(
        mailing.services, args={"path": "<img src=https://evil.example/x><form action=//evil.example>"}
    )
    await mailing.sweep()
    [mail] = mailing.server.mails_to("ada@example.com")
    shown = HtmlReader.parse(mail)
    assert shown.tags <= {
        *("html", "head", "meta", "style", "title", "body", "div", "p", "span", "strong", "ul", "li"),
        *("table", "tr", "th", "td", "a"),
    }
    assert "url(" not in mail.html
    assert "@import" not in mail.html
    assert [link for link in shown.links if not link.startswith(f"{PUBLIC}/a/")] == []


HOSTILE = {
    "markup": "</td></table><script>alert(1)</script><a href='https://evil.example'>Approve</a>",
    "header": "x\r\nBcc: eve@example.com\r\n\r\nForged body",
    "word": "=?utf-8?q?=0D=0ABcc:_eve=40example.com?=",
    "turned": "invoice\u202efdp.exe",
    "hidden": "pay\u200bpal",
    "line": "ok\nApproved: yes\nhttps://evil.example/approve",
    "link": "https://evil.example/a www.evil.example",
    "dot": "first\r\n.\r\nMAIL FROM:<eve@example.com>",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_an_argument_stays_an_argument(mailing: MailSetup, name: str) -> None:  # R25 R47
    """It stands in the subject, too: the sentence is made of it."""
    await propose_pending(mailing.services, args={"path": HOSTILE[name]})
    await mailing.sweep()
    [mail] = mailing.server.mails_to("ada@example.com")
    assert_valid_mime(mail)
    head, shown = mail.parsed, HtmlReader.parse(mail)
    assert {key.lower() for key in head.keys()} == HEADERS  # noqa: SIM118
    assert mail.to == ["ada@example.com"]
    assert len(head["Subject"].splitlines()) == 1
    assert not any(ch in mail.text + mail.html + head["Subject"] for ch in "\u202e\u200b\u0000\x1b")
    assert shown.links == [find_link(mail)]
    assert "script" not in shown.tags
    assert [line for line in mail.text.splitlines() if line.startswith(("Approved:", "Bcc:", "MAIL FROM"))] == []
    found = re.findall(r"https?://\S+|www\.\S+", mail.text)
    assert found == [find_link(mail)]


async def test_long_arguments_are_cut_and_say_how_long_they_are(mailing: MailSetup) -> None:  # R25
    args = {"path": "/tmp/x", "body": "a" * 1_000_000, **{f"more_{n}": n for n in range(40)}}
    await propose_pending(mailing.services, args=args)
    await mailing.sweep()
    [mail] = mailing.server.mails_to("ada@example.com")
    assert_valid_mime(mail)
    assert "(1,000,000 characters)" in mail.text
    assert "22 more in the web app" in mail.text
    assert len(mail.raw) < 60_000


async def test_what_may_deceive_is_a_warning(mailing: MailSetup) -> None:  # R25
    await propose_pending(mailing.services, args={"path": "/tmp/\u202egpj.exe"})
    await mailing.sweep()
    [mail] = mailing.server.mails_to("ada@example.com")
    assert "Check carefully:" in mail.text
    assert "Check carefully:" in HtmlReader.parse(mail).text
    assert "\\u{202e}" in mail.text


async def test_secrets_are_in_no_mail_log_or_row(mailing: MailSetup) -> None:  # R25 R41
    planted = [f"hunter-{number:02}-secret" for number in range(50)]
    spec = replace(WRITE, name="send", secret=("password",), describe="Send it to {path}")
    for number, secret in enumerate(planted):
        await propose_pending(mailing.services, number, spec, args={"path": "x", "password": secret})
    mailing.server.overrides["DATA"] = "451 4.7.1 try later, hunter2 is your password"
    await mailing.sweep()
    mailing.server.overrides.clear()
    mailing.services.clock.advance(2 * MINUTE)  # type: ignore[attr-defined]
    await mailing.sweep()
    assert mailing.server.accepted
    told = "".join(mail.raw.decode() + mail.text + mail.html for mail in mailing.server.accepted) + "".join(mailing.log)
    rows = await mailing.services.store.deliveries.list_deliveries("default", "sent")
    told += repr([*rows, *await mailing.services.store.deliveries.list_deliveries("default", "due")])
    assert [secret for secret in (*planted, "hunter2", "smtp password") if secret in told] == []


async def test_the_mails_about_one_call_are_one_thread(mailing: MailSetup, clock: Clock) -> None:  # R25 R28
    approval_id = await propose_pending(mailing.services)
    await mailing.sweep()
    await approve(mailing.services, approval_id)
    await mailing.sweep()
    first, ended = mailing.server.mails_to("ada@example.com")
    root = f"<default.{approval_id}@example.com>"
    name = first.parsed["Message-ID"]
    assert first.parsed["References"] == root
    assert first.parsed["In-Reply-To"] is None
    assert (ended.parsed["References"], ended.parsed["In-Reply-To"]) == (f"{root} {name}", name)
    assert ended.parsed["Message-ID"] != name


async def test_when_it_was_decided_elsewhere_the_others_hear_who_did(mailing: MailSetup) -> None:  # R25
    approval_id = await propose_pending(mailing.services)
    await mailing.sweep()
    await approve(mailing.services, approval_id)
    await mailing.sweep()
    await mailing.sweep()
    [_, ended] = mailing.server.mails_to("ada@example.com")
    assert_valid_mime(ended)
    assert ended.parsed["Subject"] == "Approved: Delete /tmp/x"
    assert "bob approved it through test." in ended.text
    assert "Nothing is left to decide." in ended.text
    assert find_link(ended) == f"{PUBLIC}/a/{approval_id}"  # no token: it has no power
    assert len(mailing.server.mails_to("bob@example.com")) == 1  # who did it knows


async def test_outcome_is_mailed_once(mailing: MailSetup) -> None:  # R25
    approval_id = await propose_pending(mailing.services)
    await mailing.sweep()
    await approve(mailing.services, approval_id)
    await mailing.sweep()
    started = await mailing.services.gate.start("default", approval_id, "runner")
    await mailing.services.gate.finish("default", approval_id, started.fence, ok=True, payload=OK)
    await mailing.sweep()
    assert len(mailing.server.mails_to("ada@example.com")) == 2


async def test_a_rejection_that_is_taken_back_asks_again(mailing: MailSetup) -> None:  # R25
    approval_id = await propose_pending(mailing.services)
    await mailing.sweep()
    stored = await mailing.services.store.get("default", approval_id)
    await mailing.services.inbox.decide(
        "default", approval_id, Reject("no", Acknowledgement(stored.approval.args_sha256)), BOB
    )
    await mailing.sweep()
    await mailing.services.inbox.undo("default", approval_id, BOB)
    await mailing.sweep()
    subjects = [mail.parsed["Subject"] for mail in mailing.server.mails_to("ada@example.com")]
    assert subjects == ["Delete /tmp/x", "Rejected: Delete /tmp/x", "Delete /tmp/x"]
    assert "?t=" in find_link(mailing.server.mails_to("ada@example.com")[2])


async def test_retried_mail_is_the_same_mail(mailing: MailSetup, clock: Clock) -> None:  # R24
    await propose_pending(mailing.services)
    mailing.server.overrides["DATA"] = "450 4.2.1 busy"
    await mailing.sweep()
    mailing.server.overrides.clear()
    clock.advance(2 * MINUTE)
    await mailing.sweep()
    tries = {mail.to[0]: mail.parsed["Message-ID"] for mail in mailing.server.refused}
    assert tries == {mail.to[0]: mail.parsed["Message-ID"] for mail in mailing.server.accepted}
    assert len(set(tries.values())) == 2


async def test_reminder_and_escalation_say_why(mailing: MailSetup) -> None:  # R28
    await propose_pending(mailing.services)
    await mailing.dispatcher.route()
    [delivery, _] = await mailing.services.store.deliveries.list_deliveries("default", "due")
    message = await mailing.notifications.compose(delivery)
    channel = mailing.notifications.channel("mail")
    ref = await channel.send(replace(message, purpose="escalate"))
    assert await channel.update(replace(message, purpose="remind", id="again"), ref) == ref
    escalated, reminder = mailing.server.accepted
    assert escalated.parsed["Subject"] == "Escalated: Delete /tmp/x"
    assert "was escalated to you" in escalated.text
    assert reminder.parsed["Subject"] == "Reminder: Delete /tmp/x"
    assert "still pending" in reminder.text
    assert reminder.parsed["In-Reply-To"] == escalated.parsed["Message-ID"]


async def test_that_time_ran_out_is_said_without_a_link_that_has_power(mailing: MailSetup) -> None:  # R28
    approval_id = await propose_pending(mailing.services)
    await mailing.dispatcher.route()
    [delivery, _] = await mailing.services.store.deliveries.list_deliveries("default", "due")
    message = await mailing.notifications.compose(delivery)
    assert message.approval_view is not None
    over = replace(message.approval_view, status="expired")
    await mailing.notifications.channel("mail").send(replace(message, purpose="expired", approval_view=over))
    [mail] = mailing.server.accepted
    assert_valid_mime(mail)
    assert mail.parsed["Subject"] == "Expired: Delete /tmp/x"
    assert find_link(mail) == f"{PUBLIC}/a/{approval_id}"


async def test_the_senders_name_may_be_in_any_language(services: AppServices, server: MailServer) -> None:  # R25
    mailing = MailSetup(services, server, **{"from": "Prüfstelle <interlock@example.com>"})
    await mailing.people("ada")
    await mailing.notifications.send_test("default", "mail", "ada")
    [mail] = server.accepted
    assert_valid_mime(mail)
    assert (mail.parsed["From"], mail.sender) == ("Prüfstelle <interlock@example.com>", "interlock@example.com")


async def test_a_change_that_asks_nothing_new_sends_no_mail(mailing: MailSetup) -> None:  # R44
    await propose_pending(mailing.services)
    await mailing.dispatcher.route()
    [delivery, _] = await mailing.services.store.deliveries.list_deliveries("default", "due")
    message = await mailing.notifications.compose(delivery)
    assert await mailing.notifications.channel("mail").update(replace(message, purpose="changed"), "ref") == "ref"
    assert mailing.server.accepted == []


async def test_many_at_once_become_one_mail(mailing: MailSetup) -> None:  # R44
    for number in range(30):
        await propose_pending(mailing.services, number)
    await mailing.sweep()
    mails = mailing.server.mails_to("ada@example.com")
    [group] = [mail for mail in mails if "more calls" in mail.parsed["Subject"]]
    assert_valid_mime(group)
    assert len(mails) == 10
    assert find_link(group) == f"{PUBLIC}/inbox"


async def test_test_message_goes_to_the_caller_and_is_new_each_time(mailing: MailSetup, clock: Clock) -> None:  # R25
    await mailing.notifications.send_test("default", "mail", "ada")
    clock.advance(1_000)
    await mailing.notifications.send_test("default", "mail", "ada")
    one, two = mailing.server.mails_to("ada@example.com")
    assert_valid_mime(one)
    assert one.parsed["Subject"] == "Test message from Interlock, sent by ada"
    assert one.parsed["Message-ID"] != two.parsed["Message-ID"]


async def test_a_list_gets_one_mail_whose_link_is_nobodys(services: AppServices, server: MailServer) -> None:  # R25
    mailing = MailSetup(services, server, to=["team@example.com", "Ops <ops@example.com>"], reply_to="help@example.com")
    await mailing.people("ada", "bob")
    approval_id = await propose_pending(services)
    assert await mailing.sweep() == 1
    [mail] = server.accepted
    assert_valid_mime(mail)
    assert mail.to == ["team@example.com", "ops@example.com"]
    assert mail.parsed["Reply-To"] == "help@example.com"
    assert find_link(mail) == f"{PUBLIC}/a/{approval_id}"
    assert "This mail goes to a list" in mail.text
    assert not mailing.notifications.routes.capabilities["mail"].personal


async def test_a_code_is_in_the_mail_and_not_in_its_subject(server: MailServer) -> None:  # R25
    channel, _ = open_channel("mail", "email", ChannelContext("mail", server.settings(), PUBLIC))
    await channel.send_code(Recipient("ada", "ada@example.com"), "12345678", "one", 1_800_000_000_000)  # type: ignore[attr-defined]
    [mail] = server.accepted
    assert_valid_mime(mail)
    assert "12345678" not in str(mail.parsed.items())
    assert "    12345678\n" in mail.text
    assert "12345678" in HtmlReader.parse(mail).text
    assert HtmlReader.parse(mail).links == []
    assert "Do not share it" in mail.text


HEADERS = {
    *("subject", "from", "to", "date", "message-id", "auto-submitted", "x-auto-response-suppress"),
    *("mime-version", "content-type", "references"),
}


class HtmlReader(HTMLParser):
    """What a person sees of a page: its words, its tags and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text = ""

    @classmethod
    def parse(cls, mail: Mail) -> HtmlReader:
        made = cls()
        made.feed(mail.html)
        return made

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in ("src", "action", "background", "srcset")
            if name == "href":
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def find_link(mail: Mail) -> str:
    """The only line that is an address."""
    [found] = [line for line in mail.text.splitlines() if line.startswith("http")]
    return found
