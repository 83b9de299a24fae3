"""Links of messages: looking decides nothing; a code signs one person in; a decision spends the link, once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

import httpx2
import pytest

from interlock.accounts import passwords
from interlock.app.bootstrap import AppServices
from interlock.config.models import ChannelSettings, RoutingSettings, ServerSettings, Settings
from interlock.core.ports import User
from interlock.notify import message_text
from interlock.notify.service import LINK_LIFETIME
from interlock.server.app import build_app
from interlock.server.logs import JsonLogger
from interlock.server.middleware import RequestMiddleware
from interlock.server.models import ApprovalJson
from interlock.server.routes import links
from interlock.server.serve import make_server_state
from interlock.server.state import CODES_PER_MINUTE, ServerState
from tests.databases import Database
from tests.fakes.mail_server import MailServer, mail_server
from tests.server.conftest import ClientFactory
from tests.support import Clock, all_event_kinds, propose_pending, status

OURS = "http://127.0.0.1:8321"
MINUTE = 60_000


@pytest.fixture(scope="module")
def shared_mail_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailServer]:
    with mail_server(tmp_path_factory.mktemp("mail"), tls="none") as made:
        yield made


@pytest.fixture
def mails(shared_mail_server: MailServer) -> MailServer:
    shared_mail_server.accepted.clear()
    shared_mail_server.overrides.clear()
    return shared_mail_server


@pytest.fixture
def settings(mails: MailServer) -> Settings:
    mail = {"host": "127.0.0.1", "port": mails.port, "tls": "none", "from": "interlock@example.com"}
    return Settings(
        server=ServerSettings(public_url=OURS),
        channels={"mail": ChannelSettings("email", mail)},
        routing=RoutingSettings("mail"),
    )


@dataclass
class MailedApproval:
    """A call that ada and bob were mailed about."""

    state: ServerState
    services: AppServices
    mails: MailServer
    approval_id: str
    log: list[str]

    def token(self, name: str = "ada", number: int = 0) -> str:
        found = re.search(r"/a/\S+\?t=(\S+)", self.mails.mails_to(f"{name}@example.com")[number].text)
        assert found
        return found[1]

    def code(self, name: str = "ada") -> str:
        """The newest one that was mailed."""
        found = re.search(r"^    (\d{8})$", self.mails.mails_to(f"{name}@example.com")[-1].text, re.M)
        assert found
        return found[1]

    async def sweep(self) -> None:
        await self.state.workspaces.refresh("default")
        await self.state.notifications.make_dispatcher().sweep()

    async def is_unspent(self, *, decided: bool = False) -> bool:
        found = await self.services.store.deliveries.for_approval("default", self.approval_id)
        assert found
        standing = await status(self.services, self.approval_id)
        return all(each.used_at is None for each in found) and (standing == "pending") is not decided

    async def digest(self) -> str:
        return (await self.services.store.get("default", self.approval_id)).approval.args_sha256


@pytest.fixture
async def mailed(
    state: ServerState, services: AppServices, mails: MailServer, keys: dict[str, str]
) -> AsyncIterator[MailedApproval]:
    assert keys
    lines: list[str] = []
    state.log = JsonLogger(services.clock, "requests", lines.append)
    for name, role in (("ada", "admin"), ("bob", "reviewer")):
        await services.store.put_user("default", User(name, role, email=f"{name}@example.com"), "test")
    made = MailedApproval(state, services, mails, "", lines)
    await made.sweep()
    made.approval_id = await propose_pending(services)
    await made.sweep()
    assert len(mails.accepted) == 2
    yield made
    await state.background_tasks.drain()
    await state.accounts.drain()


@pytest.fixture
def browser(client: ClientFactory) -> httpx2.AsyncClient:
    return client(origin=OURS)


async def inspect_link(browser: httpx2.AsyncClient, token: str) -> httpx2.Response:
    return await browser.post("/api/links/inspect", json={"token": token})


async def ask_code(mailed: MailedApproval, browser: httpx2.AsyncClient, token: str) -> str:
    answer = await browser.post("/api/links/code", json={"token": token})
    assert answer.status_code == 200, answer.text
    await mailed.state.background_tasks.drain()
    return str(answer.json()["ticket"])


async def enter_code(browser: httpx2.AsyncClient, token: str, ticket: str, code: str) -> httpx2.Response:
    return await browser.post("/api/links/session", json={"token": token, "ticket": ticket, "code": code})


async def sign_in_by_code(mailed: MailedApproval, browser: httpx2.AsyncClient, name: str = "ada") -> httpx2.AsyncClient:
    """By a code that was mailed."""
    ticket = await ask_code(mailed, browser, mailed.token(name))
    answer = await enter_code(browser, mailed.token(name), ticket, mailed.code(name))
    assert answer.status_code == 200, answer.text
    return browser


async def decide(
    mailed: MailedApproval, browser: httpx2.AsyncClient, token: str = "", kind: str = "approve"
) -> httpx2.Response:
    headers = {"interlock-link": token} if token else {}
    body = {"kind": kind, "args_sha256": await mailed.digest()}
    return await browser.post(f"/api/approvals/{mailed.approval_id}/decision", json=body, headers=headers)


# Looking


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"purpose": "prefetch"},
        {"sec-purpose": "prefetch;prerender"},
        {"x-moz": "prefetch"},
        {"user-agent": "Mozilla/5.0 (compatible; a mail scanner)"},
    ],
)
async def test_opening_the_link_decides_and_spends_nothing(
    mailed: MailedApproval, client: ClientFactory, headers: dict[str, str]
) -> None:  # R25 R47
    browser, before = client(**headers), await all_event_kinds(mailed.services)
    path = f"/a/{mailed.approval_id}?t={mailed.token()}"
    assert (await browser.head(path)).status_code == 200
    answers = [await browser.get(path) for _ in range(100)]
    assert {answer.status_code for answer in answers} == {200}
    assert all("set-cookie" not in answer.headers for answer in answers)
    assert all(answer.headers["referrer-policy"] == "no-referrer" for answer in answers)
    assert await mailed.is_unspent()
    assert await all_event_kinds(mailed.services) == before


async def test_a_scanner_that_runs_scripts_decides_and_spends_nothing(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R25 R47
    """All that the page asks by itself is a look; and what a scanner might press mails a code to the right person."""
    for _ in range(20):
        assert (await inspect_link(browser, mailed.token())).status_code == 200
    await ask_code(mailed, browser, mailed.token())
    for path in ("decision", "claim", "comment"):
        answer = await browser.post(f"/api/approvals/{mailed.approval_id}/{path}", json={"kind": "approve"})
        assert answer.status_code == 401
    assert (await decide(mailed, browser, mailed.token())).status_code == 401
    assert await mailed.is_unspent()
    assert mailed.mails.accepted[-1].to == ["ada@example.com"]


async def test_a_look_shows_what_the_mail_shows_and_for_whom_it_is(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R25
    body = (await inspect_link(browser, mailed.token())).json()
    assert (body["person"], body["workspace"], body["spent"], body["codes"]) == ("ada", "default", False, True)
    approval = body["approval"]
    assert (approval["id"], approval["status"]) == (mailed.approval_id, "pending")
    assert approval["card"]["sentence"] == "Delete /tmp/x"
    assert [field["text"] for field in approval["card"]["fields"]] == ['"/tmp/x"']
    assert approval["may_decide"] == []


async def test_a_look_shows_nothing_that_is_for_members(
    mailed: MailedApproval, browser: httpx2.AsyncClient, keys: dict[str, str], client: ClientFactory
) -> None:  # R25
    secret, long = "hunter2", "x" * 5_000
    args = {"path": long, "password": secret, **{f"n{n}": n for n in range(40)}}
    body = {"tool": "send", "args": args, "secret": ["password"], "run_id": "run", "call_id": "more"}
    said = {"thread_id": "thread-mine", "agent_says": "trust me", "preview": "3 rows"}
    answer = await client(keys["agent"]).post("/api/calls", json={**body, **said})
    mailed.approval_id = answer.json()["approval_id"]
    reviewer = client(keys["reviewer"])
    await reviewer.post(f"/api/approvals/{mailed.approval_id}/comment", json={"text": "between us"})
    await mailed.sweep()
    token = mailed.token("ada", 1)
    told = (await inspect_link(browser, token)).json()["approval"]
    for hidden in (secret, long, "thread-mine", "trust me", "3 rows", "between us", "bob"):
        assert hidden not in json.dumps(told)
    assert told["timeline"] == told["votes"] == told["stages"] == told["questions"] == []
    assert (told["args"], told["schema"], told["result"], told["run_id"]) == (None, None, None, "")
    assert len(told["card"]["fields"]) == message_text.MAX_FIELDS


def test_what_is_added_to_an_approval_is_hidden_from_links_at_first() -> None:  # R25
    names = {field.alias or name for name, field in ApprovalJson.model_fields.items()}
    assert names >= links.VISIBLE_FIELDS
    assert names - links.VISIBLE_FIELDS == {
        *("agent_path", "args", "call_id", "card", "claimed_by", "decisions", "delegations", "editors"),
        *("error_message", "excluded", "may_decide", "may_not", "open_questions", "questions", "release_at", "result"),
        *("rule", "run_id", "schema", "stages", "start_by", "thread_id", "timeline", "version", "votes"),
    }


# Links that are not ours


async def test_a_link_that_was_changed_anywhere_shows_nothing(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R47
    token = mailed.token()
    for place in range(len(token)):
        for other in ({"0", "f", ".", "A"} - {token[place]}) if place % 7 == 0 else ({"0", "1"} - {token[place]}):
            changed = token[:place] + other + token[place + 1 :]
            answer = await inspect_link(browser, changed)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), changed
    for changed in ("", token[:-1], f"{token}0", f" {token}", f"{token}\n", "é" * 40, "a.b.c.d"):
        assert (await inspect_link(browser, changed)).status_code == 404


async def test_a_link_of_another_workspace_is_no_link(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R47
    await mailed.state.accounts.add_workspace("zebra")
    before = await mailed.state.accounts.workspaces()
    for workspace in ("zebra", "nowhere"):
        assert (await inspect_link(browser, mailed.token().replace("default.", f"{workspace}."))).status_code == 404
    assert await mailed.state.accounts.workspaces() == before


async def test_a_link_ends_a_week_after_its_call(
    mailed: MailedApproval, browser: httpx2.AsyncClient, clock: Clock
) -> None:  # R25 R47
    await sign_in_by_code(mailed, browser)
    expires = (await mailed.services.store.get("default", mailed.approval_id)).approval.deadlines.expires_at
    clock.now = expires + LINK_LIFETIME - 1
    assert (await inspect_link(browser, mailed.token())).json()["approval"]["status"] == "expired"
    clock.advance(1)
    answer = await inspect_link(browser, mailed.token())
    assert (answer.status_code, answer.json()["error"]) == (410, "expired")
    late = await ask_code(mailed, browser, mailed.token())
    assert (await enter_code(browser, mailed.token(), late, "12345678")).status_code == 401


async def test_a_link_of_somebody_who_was_removed_is_no_link(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:
    token = mailed.token("bob")  # R48
    await mailed.state.accounts.remove_user("default", "bob", "ada")
    await mailed.state.workspaces.refresh("default")
    assert (await inspect_link(browser, token)).status_code == 404
    await ask_code(mailed, browser, token)
    assert len(mailed.mails.mails_to("bob@example.com")) == 1


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
async def test_no_other_site_looks_asks_or_enters(
    mailed: MailedApproval, client: ClientFactory, origin: str
) -> None:  # R47
    other = client(origin=origin) if origin else client()
    body = {"token": mailed.token(), "ticket": "x", "code": "12345678"}
    for verb, fields in (("inspect", ("token",)), ("code", ("token",)), ("session", ("token", "ticket", "code"))):
        answer = await other.post(f"/api/links/{verb}", json={name: body[name] for name in fields})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


# Codes


async def test_a_code_signs_in_the_person_of_the_link_and_nobody_else(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R25 R48
    ticket = await ask_code(mailed, browser, mailed.token())
    answer = await enter_code(browser, mailed.token(), ticket, mailed.code())
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["name"], body["role"], body["next"]) == ("ada", "admin", f"/a/{mailed.approval_id}")
    assert answer.headers["set-cookie"].endswith(f"Max-Age={passwords.SESSION_LIFETIME // 1000}")
    assert (await browser.get("/api/me")).json()["name"] == "ada"
    assert [kind for kind in await all_event_kinds(mailed.services) if kind in ("code_created", "signed_in")] == [
        "code_created",
        "signed_in",
    ]
    assert await mailed.is_unspent()


async def test_a_code_is_sent_to_the_person_and_never_to_the_asker(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R48
    answer = await browser.post("/api/links/code", json={"token": mailed.token("bob")})
    await mailed.state.background_tasks.drain()
    code = mailed.code("bob")
    assert code not in answer.text
    assert mailed.mails.accepted[-1].to == ["bob@example.com"]
    assert code not in "".join(mailed.log)


async def test_a_code_counts_once_and_in_the_browser_that_asked(
    mailed: MailedApproval, browser: httpx2.AsyncClient, client: ClientFactory
) -> None:  # R48
    ticket, other = await ask_code(mailed, browser, mailed.token()), client(origin=OURS)
    code = mailed.code()
    theirs = await ask_code(mailed, other, mailed.token())
    assert (await enter_code(other, mailed.token(), theirs, code)).status_code == 401
    assert (await enter_code(browser, mailed.token("bob"), ticket, code)).status_code == 401
    assert (await enter_code(browser, mailed.token(), ticket, f"{code[:4]} {code[4:]}")).status_code == 200
    assert (await enter_code(other, mailed.token(), ticket, code)).status_code == 401


async def test_five_wrong_codes_end_it_also_all_at_once(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R48
    ticket = await ask_code(mailed, browser, mailed.token())
    code = mailed.code()
    wrong = [f"{(int(code) + n) % 10**8:08}" for n in range(1, passwords.MAX_ATTEMPTS + 1)]
    answers = await asyncio.gather(*(enter_code(browser, mailed.token(), ticket, each) for each in wrong))
    assert {answer.status_code for answer in answers} == {401}
    assert (await enter_code(browser, mailed.token(), ticket, code)).status_code == 401
    await mailed.state.accounts.drain()
    assert "sign_in_failed" in await all_event_kinds(mailed.services)


async def test_four_wrong_codes_do_not_end_it(mailed: MailedApproval, browser: httpx2.AsyncClient) -> None:  # R48
    ticket = await ask_code(mailed, browser, mailed.token())
    code = mailed.code()
    for wrong in ("", "try 0", "00000000" if code != "00000000" else "1", code[:7]):
        assert (await enter_code(browser, mailed.token(), ticket, wrong)).status_code == 401
    assert (await enter_code(browser, mailed.token(), ticket, code)).status_code == 200


async def test_a_code_ends_after_ten_minutes(
    mailed: MailedApproval, browser: httpx2.AsyncClient, clock: Clock
) -> None:  # R48
    ticket = await ask_code(mailed, browser, mailed.token())
    clock.advance(passwords.CODE_LIFETIME)
    assert (await enter_code(browser, mailed.token(), ticket, mailed.code())).status_code == 401


async def test_a_code_of_somebody_who_was_removed_is_none(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R48
    ticket = await ask_code(mailed, browser, mailed.token("bob"))
    await mailed.state.accounts.remove_user("default", "bob", "ada")
    assert (await enter_code(browser, mailed.token("bob"), ticket, mailed.code("bob"))).status_code == 401


async def test_three_codes_in_ten_minutes_are_enough(
    mailed: MailedApproval, browser: httpx2.AsyncClient, clock: Clock
) -> None:  # R48
    for _ in range(6):
        await ask_code(mailed, browser, mailed.token())
    assert len(mailed.mails.mails_to("ada@example.com")) == 1 + passwords.MAX_CODES_PER_ADDRESS
    clock.advance(passwords.CODE_LIFETIME)
    await ask_code(mailed, browser, mailed.token())
    assert len(mailed.mails.mails_to("ada@example.com")) == 2 + passwords.MAX_CODES_PER_ADDRESS


async def test_somebody_with_the_link_does_not_keep_its_person_out(
    mailed: MailedApproval, app: RequestMiddleware
) -> None:
    async def ask_from(address: str) -> None:
        transport = httpx2.ASGITransport(app=app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url=OURS, headers={"origin": OURS}) as browser:
            await ask_code(mailed, browser, mailed.token())

    for _ in range(passwords.MAX_CODES_PER_ADDRESS + 2):
        await ask_from("198.51.100.7")
    assert len(mailed.mails.mails_to("ada@example.com")) == 1 + passwords.MAX_CODES_PER_ADDRESS
    await ask_from("203.0.113.9")
    assert len(mailed.mails.mails_to("ada@example.com")) == 2 + passwords.MAX_CODES_PER_ADDRESS
    for number in range(passwords.MAX_CODES_PER_PERSON):
        await ask_from(f"192.0.2.{number}")
    assert len(mailed.mails.mails_to("ada@example.com")) == 1 + passwords.MAX_CODES_PER_PERSON


async def test_who_asks_learns_nothing_about_a_link(mailed: MailedApproval, browser: httpx2.AsyncClient) -> None:  # R48
    right = await browser.post("/api/links/code", json={"token": mailed.token()})
    wrong = await browser.post("/api/links/code", json={"token": mailed.token()[:-1] + "x"})
    assert right.status_code == wrong.status_code == 200
    assert right.json().keys() == wrong.json().keys() == {"ticket"}
    assert len(right.json()["ticket"]) == len(wrong.json()["ticket"])
    await mailed.state.background_tasks.drain()
    body = {"token": mailed.token()[:-1] + "x", "ticket": wrong.json()["ticket"], "code": "12345678"}
    refused = await browser.post("/api/links/session", json=body)
    mistyped = await browser.post("/api/links/session", json={**body, "token": mailed.token()})
    assert refused.status_code == mistyped.status_code == 401
    assert refused.content == mistyped.content


async def test_one_address_asks_for_few_codes(mailed: MailedApproval, browser: httpx2.AsyncClient) -> None:  # R48
    answers = [await browser.post("/api/links/code", json={"token": "x"}) for _ in range(CODES_PER_MINUTE + 1)]
    assert [answer.status_code for answer in answers] == [200] * CODES_PER_MINUTE + [429]
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_what_is_kept_of_a_code_gives_it_away_to_nobody(
    mailed: MailedApproval, browser: httpx2.AsyncClient, database: Database
) -> None:  # R48
    ticket = await ask_code(mailed, browser, mailed.token())
    kept = "".join(repr(database.sql(f"select * from {table}")) for table in database.tables())
    for secret in (ticket, mailed.code(), mailed.token()):
        assert secret not in kept
    assert len(database.sql("select digest from links")) == 1 + passwords.MAX_ATTEMPTS


async def test_a_channel_that_is_down_is_logged_without_the_code(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R25
    mailed.mails.overrides["DATA"] = "554 no"
    await ask_code(mailed, browser, mailed.token())
    [line] = [line for line in mailed.log if "code_failed" in line]
    assert json.loads(line)["note"] == "The mail server rejected the mail (554)."
    assert not re.search(r"\b\d{8}\b", json.loads(line)["note"])


async def test_without_codes_people_sign_in_as_usual(
    mailed: MailedApproval, settings: Settings, services: AppServices
) -> None:  # R48
    mail = ChannelSettings("email", {**settings.channels["mail"].settings, "codes": False})
    state = await make_server_state(replace(settings, channels={"mail": mail}), services)
    await state.workspaces.refresh("default")
    transport = httpx2.ASGITransport(app=build_app(state))
    async with httpx2.AsyncClient(transport=transport, base_url=OURS, headers={"origin": OURS}) as browser:
        assert (await inspect_link(browser, mailed.token())).json()["codes"] is False
        await browser.post("/api/links/code", json={"token": mailed.token()})
        await state.background_tasks.drain()
    assert len(mailed.mails.mails_to("ada@example.com")) == 1


# Deciding


async def test_a_decision_by_the_link_names_the_channel_and_spends_it(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R25 R41
    ada = await sign_in_by_code(mailed, browser)
    answer = await decide(mailed, ada, mailed.token())
    assert answer.status_code == 200, answer.text
    decision = answer.json()["decision"]
    assert (decision["by"], decision["via"], decision["kind"]) == ("ada", "mail", "approve")
    assert (await inspect_link(browser, mailed.token())).json()["spent"] is True
    again = await decide(mailed, ada, mailed.token())
    assert again.status_code == 409
    assert "was used to decide already" in again.json()["message"]


async def test_without_the_link_a_decision_is_made_as_ever(mailed: MailedApproval, browser: httpx2.AsyncClient) -> None:
    ada = await sign_in_by_code(mailed, browser)  # R41
    assert (await decide(mailed, ada)).json()["decision"]["via"] == "web"
    assert await mailed.is_unspent(decided=True)


async def test_a_forwarded_mail_lets_nobody_decide_in_anothers_name(
    mailed: MailedApproval, keys: dict[str, str], client: ClientFactory
) -> None:  # R25 R48
    """Bob got ada's mail, and has an account of his own."""
    bob = client(keys["reviewer"])
    answer = await decide(mailed, bob, mailed.token("ada"))
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert "made for somebody else" in answer.json()["message"]
    assert await mailed.is_unspent()
    assert (await all_event_kinds(mailed.services)).count("decision_refused") == 1


async def test_a_link_decides_no_other_call(mailed: MailedApproval, browser: httpx2.AsyncClient) -> None:  # R47
    ada, token = await sign_in_by_code(mailed, browser), mailed.token()
    mailed.approval_id = await propose_pending(mailed.services, 2)
    assert (await decide(mailed, ada, token)).status_code == 403
    assert await status(mailed.services, mailed.approval_id) == "pending"


async def test_a_link_of_another_workspace_decides_nothing(
    mailed: MailedApproval, client: ClientFactory
) -> None:  # R47
    await mailed.state.accounts.add_workspace("zebra")
    await mailed.state.accounts.add_user("zebra", "ada", "admin", "test")
    _, key = await mailed.state.accounts.create_key("zebra", "mine", "admin", "test", "ada")
    answer = await decide(mailed, client(key), mailed.token())
    assert answer.status_code == 404
    assert await mailed.is_unspent()


@pytest.mark.parametrize("change", [lambda t: t[:-1] + ("0" if t[-1] != "0" else "1"), lambda _: "x", lambda _: ""])
async def test_a_forged_link_decides_nothing(mailed: MailedApproval, browser: httpx2.AsyncClient, change) -> None:  # type: ignore[no-untyped-def]  # R47
    ada = await sign_in_by_code(mailed, browser)
    forged = change(mailed.token())
    body = {"kind": "approve", "args_sha256": await mailed.digest()}
    path, headers = f"/api/approvals/{mailed.approval_id}/decision", {"interlock-link": forged}
    answer = await ada.post(path, json=body, headers=headers)
    assert answer.status_code == 403
    assert await mailed.is_unspent()


async def test_an_expired_link_is_said_to_be_over(
    mailed: MailedApproval, browser: httpx2.AsyncClient, keys: dict[str, str], client: ClientFactory, clock: Clock
) -> None:  # R47
    expires = (await mailed.services.store.get("default", mailed.approval_id)).approval.deadlines.expires_at
    clock.now = expires + LINK_LIFETIME
    answer = await decide(mailed, client(keys["admin"]), mailed.token())
    assert (answer.status_code, answer.json()["error"]) == (410, "expired")


async def test_a_decision_that_is_refused_spends_nothing(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R27
    ada = await sign_in_by_code(mailed, browser)
    path, headers = f"/api/approvals/{mailed.approval_id}/decision", {"interlock-link": mailed.token()}
    answer = await ada.post(path, json={"kind": "approve", "args_sha256": "0" * 64}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (409, "digest_mismatch")
    assert await mailed.is_unspent()
    assert (await decide(mailed, ada, mailed.token())).status_code == 200


@pytest.mark.postgres_smoke
async def test_of_many_decisions_by_one_link_one_counts(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R24
    ada = await sign_in_by_code(mailed, browser)
    kinds = ["approve", "reject"] * 5
    answers = await asyncio.gather(*(decide(mailed, ada, mailed.token(), kind) for kind in kinds))
    assert [answer.status_code for answer in answers].count(200) >= 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    won = {answer.json()["decision"]["kind"] for answer in answers if answer.status_code == 200}
    assert len(won) == 1
    assert (await all_event_kinds(mailed.services)).count("approved") + (await all_event_kinds(mailed.services)).count(
        "rejected"
    ) == 1


async def test_the_same_person_by_mail_and_page_is_one_vote(
    mailed: MailedApproval, browser: httpx2.AsyncClient, client: ClientFactory, keys: dict[str, str]
) -> None:  # R48
    policy = "version: 1\nrules: [{name: two, tools: ['*'], then: ask, quorum: 2}]"
    await mailed.state.workspaces.put_policy("default", policy, "ada", "two")
    await mailed.state.workspaces.refresh("default")
    doors = await mailed.state.workspaces.services("default")
    mailed.services = replace(mailed.services, gate=doors.gate)
    mailed.approval_id = await propose_pending(mailed.services, 2)
    await mailed.sweep()
    token = mailed.token("ada", 1)
    ada = await sign_in_by_code(mailed, browser)
    assert (await decide(mailed, ada, token)).json()["quorum"] == {"have": 1, "need": 2}
    assert (await decide(mailed, ada)).json()["quorum"] == {"have": 1, "need": 2}
    assert (await decide(mailed, client(keys["reviewer"]))).json()["status"] == "approved"


async def test_tokens_tickets_and_codes_are_in_no_log_line(
    mailed: MailedApproval, browser: httpx2.AsyncClient
) -> None:  # R41
    await browser.get(f"/a/{mailed.approval_id}?t={mailed.token()}")
    await sign_in_by_code(mailed, browser)
    await decide(mailed, browser, mailed.token())
    told = "".join(mailed.log) + (await browser.get("/metrics")).text
    assert "/a/{approval_id}" in told
    for secret in (mailed.token(), mailed.token().rpartition(".")[2], mailed.code()):
        assert secret not in told
