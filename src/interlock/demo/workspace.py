"""The demo workspace: its agents, its policy and a few made-up calls, added only to an empty workspace."""

from __future__ import annotations

from interlock.app.workspaces import Workspaces, WorkspaceServices
from interlock.chat.agents import ASSISTANT, BUILT_IN
from interlock.chat.assistant import DemoService, DemoSetup
from interlock.config.models import AgentSettings
from interlock.core.call import DEFAULT_WORKSPACE, QUESTION_SPEC, ToolSpec, propose
from interlock.core.decision import Reject, Reviewer
from interlock.core.outcome import Waiting
from interlock.demo.content import fill_content
from interlock.demo.github import FakeGitHub, fill_github
from interlock.demo.linear.content import fill_linear
from interlock.demo.linear.server import FakeLinear
from interlock.storage.store import SqlStore

AUTHOR = "demo"
SAYS = "This is a demo call: nobody waits for it, and nothing happens when it is approved."
POLICY = """\
# Made by --demo. Replace it: interlock policy put FILE
version: 1
defaults:
  expires_in: 1d
rules:
  - name: reads are free
    effect: read
    then: allow
  - name: money needs a person
    tools: [fund_transfer]
    then: ask
    priority: high
  - name: nobody drops tables
    tools: [drop_*]
    then: deny
    reason: Dropping tables is not allowed.
"""
HARMLESS = ToolSpec("linear_create_issue", "write", describe="Create issue {title!r}")
MONEY = ToolSpec("fund_transfer", "destructive", describe="Send {amount} EUR to {recipient}")
MAIL = ToolSpec("send_email", "destructive", describe="Send {subject!r} to {to}")
SECRET = ToolSpec("config_update", "write", describe="Set {key}", secret=("/value",))
DELETE = ToolSpec("cms_delete_page", "destructive", describe="Permanently delete page {slug!r}? This cannot be undone.")
CALLS: tuple[tuple[ToolSpec, dict[str, object]], ...] = (
    (HARMLESS, {"title": "Login fails on Safari", "assignee": None, "labels": ["bug"]}),
    (MONEY, {"amount": 2500, "recipient": "supplier@external.example", "reference": "Invoice 1047"}),
    (MAIL, {"to": "team@example.com", "subject": "Minutes\u202efdp.exe", "body": "See p\u0430ypal.example\u200b/pay"}),
    (SECRET, {"key": "smtp.password", "value": "not-a-real-password"}),
)


async def fill_demo(store: SqlStore, workspaces: Workspaces) -> bool:
    """Fill the workspace; return False if there are calls already: made-up ones must not mix with real ones."""
    items = store.tool_items(DEFAULT_WORKSPACE)
    await fill_content(items)
    await fill_linear(items)
    await fill_github(items)
    if (await store.stats(DEFAULT_WORKSPACE)).by_status:
        return False
    if await store.policy(DEFAULT_WORKSPACE) is None:
        await workspaces.put_policy(DEFAULT_WORKSPACE, POLICY, AUTHOR, "The demo.")
    services = await workspaces.services(DEFAULT_WORKSPACE)
    for number, (spec, args) in enumerate(CALLS):
        await _propose(services, spec, args, f"demo-{number}")
    await _ask_question(services)
    await _reject_one(services)
    return True


async def _propose(services: WorkspaceServices, spec: ToolSpec, args: dict[str, object], call_id: str) -> str:
    call = propose(spec.name, args, AUTHOR, call_id, workspace=services.workspace, agent=AUTHOR, agent_says=SAYS)
    outcome = await services.gate.check(call, spec)
    return outcome.approval_id if isinstance(outcome, Waiting) else ""


async def _ask_question(services: WorkspaceServices) -> None:
    question = {"question": "Which of the two drafts should go out?", "choices": ["the short one", "the long one"]}
    call = propose(QUESTION_SPEC.name, question, AUTHOR, "demo-question", workspace=services.workspace, agent=AUTHOR)
    await services.gate.ask(call, QUESTION_SPEC)


async def _reject_one(services: WorkspaceServices) -> None:
    approval_id = await _propose(services, DELETE, {"slug": "pricing-2019"}, "demo-rejected")
    if approval_id:
        reviewer = Reviewer(AUTHOR, "admin", teams=frozenset(), via=AUTHOR)
        decision = Reject("Still linked from the start page. (A demo decision.)")
        await services.inbox.decide(services.workspace, approval_id, decision, reviewer)


WRITER = "writer"
_WRITER = AgentSettings(
    instructions="You look after the posts of the web site: read, publish, archive and delete them.", tools=("cms",)
)
_ASSISTANT = AgentSettings(
    instructions=BUILT_IN[ASSISTANT].instructions, tools=BUILT_IN[ASSISTANT].tools, agents=(WRITER,)
)
_SERVICES = {
    "linear": DemoService({"key": "lin_api_demo"}, FakeLinear),
    "github": DemoService({"token": "demo"}, FakeGitHub),
}
DEMO = DemoSetup({ASSISTANT: _ASSISTANT, WRITER: _WRITER}, _SERVICES, fill_demo)
