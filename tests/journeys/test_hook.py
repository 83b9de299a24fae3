"""The hook of Claude Code, and what Claude Code makes of how it ends: exit 0 with JSON, exit 2, or any other."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.interlock_server import run_server
from tests.journeys.shell import TIMEOUT, CommandResult, Shell, wait_until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "frameworks" / "claude-code.md"
PAGE_DATABASE = "sqlite:////srv/interlock/approvals.db"
COMMAND = {"command": "make deploy", "description": "Deploys"}
QUICK = "version: 1\ndefaults: {undo_window: 0s}\nrules:\n"
RULES = """\
  - {name: never, tools: [Nuke], then: deny, reason: Never that}
  - {name: free, tools: [Free], then: allow}
"""


@dataclass
class HookResult:
    """What Claude Code does next."""

    done: CommandResult

    @property
    def output(self) -> dict[str, Any]:
        return dict(self.done.json["hookSpecificOutput"]) if self.done.out.strip() else {}

    @property
    def lets_run(self) -> bool:
        """Fails open: whatever is neither a decision nor exit 2 lets the call through."""
        if self.done.code == 2:
            return False
        return self.done.code != 0 or self.output.get("permissionDecision") == "allow"

    @property
    def reason(self) -> str:
        return str(self.output.get("permissionDecisionReason", ""))


@dataclass
class ClaudeCode:
    """Claude Code, as far as a hook knows it."""

    shell: Shell
    command_words: tuple[str, ...] = ()
    session: str = "5b1e8f0c-session"
    more: dict[str, Any] = field(default_factory=dict)

    def event(self, name: str, tool: str, args: object, use: str, **more: Any) -> str:
        about = {"session_id": self.session, "transcript_path": "t.jsonl", "cwd": str(self.shell.folder)}
        about |= {"permission_mode": "default", "hook_event_name": name, "tool_name": tool, "tool_input": args}
        return json.dumps(about | ({"tool_use_id": use} if use else {}) | self.more | more)

    def hook(self, *words: str) -> list[str]:
        return ["hook", "--notes", str(self.shell.folder / "notes"), *self.command_words, *words]

    def answer(self, data: str, *words: str) -> HookResult:
        """Of a hook that has no need of people."""
        return HookResult(self.shell(*self.hook(*words), stdin=data))

    def start(self, data: str, *words: str) -> subprocess.Popen[str]:
        """As Claude Code does, which goes on with other things meanwhile."""
        command, pipe = self.shell.command(*self.hook(*words)), subprocess.PIPE
        program = self.shell.program(*command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert program.stdin is not None
        program.stdin.write(data)
        program.stdin.close()
        program.stdin = None
        return program

    def begin(self, tool: str, args: object, use: str, *words: str, **more: Any) -> subprocess.Popen[str]:
        return self.start(self.event("PreToolUse", tool, args, use, **more), *words)

    def ask(self, tool: str, args: object, use: str, *words: str, **more: Any) -> HookResult:
        return self.answer(self.event("PreToolUse", tool, args, use, **more), *words)

    def report_result(self, tool: str, args: object, use: str, response: object) -> CommandResult:
        return self.answer(self.event("PostToolUse", tool, args, use, tool_response=response)).done

    def pending_ids(self) -> str:
        found: list[str] = []

        def one() -> bool:
            found[:] = [item["id"] for item in self.list_approvals("pending")]
            return bool(found)

        wait_until(one, "a call waits", pause=0.05)
        return found[0]

    def list_approvals(self, status: str = "all") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.shell("approvals", "list", "--status", status, "--json").json["items"]
        return items

    def decide(self, verb: str, *words: str) -> None:
        done = self.shell("approvals", verb, self.pending_ids(), *words)
        assert done.code == 0, done.err

    def put_policy(self, rules: str) -> None:
        (self.shell.folder / "policy.yaml").write_text(QUICK + rules)
        assert self.shell("policy", "put", "policy.yaml").code == 0


def verdict(program: subprocess.Popen[str]) -> HookResult:
    out, err = program.communicate(timeout=TIMEOUT)
    return HookResult(CommandResult(program.returncode, out, err))


@pytest.fixture
def claude(shell: Shell) -> ClaudeCode:
    assert shell("migrate").code == 0
    made = ClaudeCode(shell)
    made.put_policy(RULES)
    return made


# R54, R34
@pytest.mark.smoke
def test_reads_pass_if_they_were_named_and_what_is_forbidden_does_not(claude: ClaudeCode) -> None:
    reading = claude.ask("Read", {"file_path": "a.txt"}, "toolu_1", "--reads", "claude-code")
    assert (reading.done.code, reading.output) == (0, {"hookEventName": "PreToolUse", "permissionDecision": "allow"})
    passed = claude.ask("Read", {"file_path": "a.txt"}, "toolu_2", "--reads", "claude-code", "--pass-reads")
    assert (passed.done.code, passed.done.json) == (0, {})
    denied = claude.ask("Nuke", {}, "toolu_3", "--reads", "claude-code")
    assert (denied.done.code, denied.lets_run, denied.reason) == (0, False, "Access denied: Never that")
    assert claude.list_approvals() == []


# R59
@pytest.mark.smoke
def test_a_hook_judges_by_its_own_policy_where_none_is_stored(shell: Shell) -> None:
    assert shell("migrate").code == 0
    config = shell.folder / "hook.yaml"
    rule = "{name: secret, tools: [Read], then: deny, reason: Nobody reads that}"
    config.write_text(f"storage: {{url: 'sqlite:///{shell.path}'}}\npolicy: {{version: 1, rules: [{rule}]}}\n")
    config.chmod(0o600)
    claude = ClaudeCode(shell, ("--config", str(config)))
    denied = claude.ask("Read", {"file_path": "a.txt"}, "toolu_1", "--reads", "claude-code")
    assert (denied.lets_run, denied.reason) == (False, "Access denied: Nobody reads that")


# R54, R12
@pytest.mark.smoke
def test_what_a_person_approved_is_what_claude_code_is_told_to_run_and_how_it_ended_is_kept(claude: ClaudeCode) -> None:
    program = claude.begin("Bash", COMMAND, "toolu_1", agent_id="a-1", agent_type="deployer")
    claude.decide("approve")
    answer = verdict(program)
    assert answer.done.code == 0, answer.done.err
    assert answer.output["permissionDecision"] == "allow"
    assert answer.output["updatedInput"] == COMMAND
    (item,) = claude.list_approvals()
    assert (item["status"], item["sentence"], item["tool"]) == ("running", "Run make deploy", "Bash")
    assert (item["run_id"], item["call_id"], item["agent_path"]) == (
        claude.session,
        "toolu_1",
        ["claude-code", "deployer"],
    )
    ended = claude.report_result("Bash", COMMAND, "toolu_1", {"stdout": "deployed", "stderr": "", "interrupted": False})
    assert (ended.code, ended.out.strip()) == (0, "{}")
    shown = claude.shell("approvals", "show", item["id"], "--json").json
    assert (shown["status"], shown["result"]["stdout"]) == ("succeeded", "deployed")
    again = claude.ask("Bash", COMMAND, "toolu_1", agent_id="a-1", agent_type="deployer")
    assert not again.lets_run
    assert "deployed" in again.reason


# R12
def test_an_edit_is_what_runs_and_a_bad_one_goes_back_to_the_person(claude: ClaudeCode) -> None:
    program = claude.begin("Bash", COMMAND, "toolu_1")
    bad = claude.shell("approvals", "edit", claude.pending_ids(), "--args", json.dumps({"command": 7}))
    assert bad.code == 1
    assert "/command" in bad.err
    edited = {"command": "make deploy DRY=1"}
    claude.decide("edit", "--args", json.dumps(edited))
    assert verdict(program).output["updatedInput"] == edited
    assert claude.report_result("Bash", edited, "toolu_1", "ok").code == 0
    assert [item["status"] for item in claude.list_approvals()] == ["succeeded"]


# R11, R35, R5
def test_a_no_an_answer_and_silence_are_told_to_the_model(claude: ClaudeCode) -> None:
    program = claude.begin("Bash", COMMAND, "toolu_1")
    claude.decide("reject", "--reason", "Not on Sundays")
    rejected = verdict(program)
    assert (rejected.done.code, rejected.lets_run, rejected.reason) == (0, False, "Access denied: Not on Sundays")
    program = claude.begin("Bash", COMMAND, "toolu_2")
    claude.decide("respond", "Ask Carol instead")
    answered = verdict(program)
    assert (answered.lets_run, answered.reason) == (False, "Ask Carol instead")
    claude.put_policy("  - {name: quick, then: ask, expires_in: 1s}\n")
    expired = claude.ask("Bash", COMMAND, "toolu_3")
    assert not expired.lets_run
    assert "timed out" in expired.reason


# R24, R46
def test_twice_the_same_call_at_once_runs_once(claude: ClaudeCode) -> None:
    asked = [claude.begin("Bash", COMMAND, "toolu_1") for _ in range(2)]
    claude.decide("approve")
    answers = [verdict(program) for program in asked]
    assert sorted(answer.lets_run for answer in answers) == [False, True]
    (refused,) = [answer for answer in answers if not answer.lets_run]
    assert (refused.done.code, "already started" in refused.reason) == (0, True)
    free = [verdict(each) for each in [claude.begin("Free", {}, "toolu_2") for _ in range(2)]]
    assert sorted(answer.lets_run for answer in free) == [False, True]


# R23
def test_who_is_not_decided_about_in_time_is_denied_and_goes_on_when_asked_again(claude: ClaudeCode) -> None:
    first = claude.ask("Bash", COMMAND, "toolu_1", "--wait", "0s")
    waiting = claude.pending_ids()
    assert (first.done.code, first.lets_run) == (0, False)
    assert f"(interlock approvals show {waiting} --database {claude.shell.url})" in first.reason
    assert "again" in first.reason
    deferred = claude.ask("Bash", COMMAND, "toolu_1", "--wait", "0s", "--undecided", "defer")
    assert deferred.output["permissionDecision"] == "defer"
    assert [item["id"] for item in claude.list_approvals()] == [waiting]
    claude.decide("approve")
    again = claude.ask("Bash", COMMAND, "toolu_2")  # a model that calls again does so under a new id
    assert again.lets_run
    assert claude.report_result("Bash", COMMAND, "toolu_2", "ok").code == 0
    assert [(item["id"], item["status"]) for item in claude.list_approvals()] == [(waiting, "succeeded")]
    another = claude.ask("Bash", COMMAND, "toolu_3", "--wait", "0s", "--undecided", "ask")
    assert another.output["permissionDecision"] == "ask"
    assert [item["status"] for item in claude.list_approvals()] == ["cancelled", "succeeded"]


WRONG: tuple[tuple[str, ...], ...] = (  # what comes in, and the options
    ("",),
    ("not JSON",),
    ("[]",),
    ('{"hook_event_name": "PreToolUse"}',),
    ('{"hook_event_name": "Stop", "session_id": "s"}',),
    ("EVENT", "--database", "sqlite:///nowhere.db"),
    ("EVENT", "--database", "nonsense"),
    ("EVENT", "--url", "http://127.0.0.1:9", "--key", "ilk_x_y"),
    ("EVENT", "--undecided", "allow"),
    ("EVENT", "--reads", "*"),
    ("EVENT", "--wait", "long"),
    ("EVENT", "--lease", "2d"),
    ("EVENT", "--no-such-option"),
    ("EVENT", "--config", "nowhere.yaml"),
)


# R34
@pytest.mark.smoke
def test_nothing_runs_after_any_failure(claude: ClaudeCode) -> None:
    event = claude.event("PreToolUse", "Bash", COMMAND, "toolu_1")
    for data, *words in WRONG:
        answer = claude.answer(event if data == "EVENT" else data, *words)
        assert_refused(answer, data, words)
    assert claude.list_approvals() == []


# R34
@pytest.mark.smoke
def test_a_process_that_cannot_begin_blocks_the_call(claude: ClaudeCode) -> None:
    for data, *words in (WRONG[0], WRONG[-2]):
        assert_refused(verdict(claude.start(data, *words)), data, words)


HOSTILE = "version: 1\nrules:\n  - {name: all, then: allow}\n"


@pytest.fixture
def hostile(claude: ClaudeCode) -> ClaudeCode:
    """In a folder that somebody else wrote, with all that would let everything through; and nothing is named."""
    folder = claude.shell.folder
    claude.shell.url = f"sqlite:///{folder / 'interlock.db'}"
    assert claude.shell("migrate").code == 0
    (folder / "policy.yaml").write_text(HOSTILE)
    assert claude.shell("policy", "put", "policy.yaml").code == 0
    (folder / "interlock.yaml").write_text("storage: {url: sqlite:///interlock.db}\npolicy: policy.yaml\n")
    (folder / ".env").write_text(f"INTERLOCK_DATABASE_URL={claude.shell.url}\n")
    claude.shell.extra = {"INTERLOCK_DATABASE_URL": "", "XDG_CONFIG_HOME": str(folder / "own")}
    return claude


# R34
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("words", "env"),
    [
        ((), {}),
        (("--database", "sqlite:///interlock.db"), {}),
        (("--config", "interlock.yaml"), {}),
        ((), {"INTERLOCK_DATABASE_URL": "sqlite:///interlock.db"}),
        ((), {"INTERLOCK_CONFIG": "interlock.yaml"}),
        ((), {"XDG_CONFIG_HOME": "."}),
    ],
)
def test_the_working_folder_says_nothing_to_a_hook(
    hostile: ClaudeCode, words: tuple[str, ...], env: dict[str, str]
) -> None:
    hostile.shell.extra |= {"HOME": str(hostile.shell.folder / "home"), **env}
    answer = hostile.ask("Bash", COMMAND, "toolu_1", *words)
    assert_refused(answer, words, env)
    assert answer.output["permissionDecision"] == "deny"
    assert "absolute path" in answer.reason or "Add --database sqlite:////" in answer.reason


# R34
@pytest.mark.smoke
def test_the_users_own_configuration_counts_unless_others_may_write_it(hostile: ClaudeCode) -> None:
    own = hostile.shell.folder / "own" / "interlock"
    own.mkdir(parents=True)
    file = own / "interlock.yaml"
    file.write_text(f"storage: {{url: 'sqlite:///{hostile.shell.path}'}}\n")  # where only Free is allowed
    for path in (file, own):
        path.chmod(0o700)
    assert hostile.ask("Free", {}, "toolu_1").lets_run
    assert "Never that" in hostile.ask("Nuke", {}, "toolu_2").reason
    for path in (file, own):
        path.chmod(0o702)
        answer = hostile.ask("Free", {}, "toolu_3")
        assert_refused(answer)
        assert f"chmod go-w {path}" in answer.reason
        path.chmod(0o700)


# R34
@pytest.mark.smoke
def test_the_working_folder_says_nothing_to_a_gate_either(hostile: ClaudeCode) -> None:
    done = hostile.shell.process("mcp-gate", "--json", "--", "true")
    assert done.code == 2, done
    assert done.json["error"] == "misconfigured"
    assert "Add --database sqlite:////" in done.json["message"]


# R34
@pytest.mark.smoke
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_hook_that_is_ended_before_it_is_there_answers_no(claude: ClaudeCode, number: int) -> None:
    slow = claude.shell.folder / "slow"
    slow.mkdir()
    (slow / "typer.py").write_text("import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(600)\n")
    path = os.pathsep.join([str(slow), claude.shell.env()["PYTHONPATH"]])
    pipe = subprocess.PIPE
    command = claude.shell.command("hook")
    program = claude.shell.program(*command, more={"PYTHONPATH": path}, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert program.stderr is not None
    assert program.stderr.readline() == "loading\n"
    program.send_signal(number)
    answer = verdict(program)
    assert_refused(answer, number)
    assert answer.output["permissionDecision"] == "deny"


# R34
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGTERM, marks=pytest.mark.smoke), signal.SIGINT, signal.SIGHUP]
)
def test_hook_ended_while_pending_denies_and_the_approval_stays_pending(claude: ClaudeCode, number: int) -> None:
    program = claude.begin("Bash", COMMAND, "toolu_1")
    waiting = claude.pending_ids()
    program.send_signal(number)
    answer = verdict(program)
    assert_refused(answer, number)
    assert answer.output["permissionDecision"] == "deny"
    assert claude.pending_ids() == waiting


# R34
def test_a_hook_that_is_ended_answers_in_the_words_of_its_event(claude: ClaudeCode) -> None:
    program = claude.start(claude.event("PermissionRequest", "Bash", COMMAND, ""))
    claude.pending_ids()
    program.send_signal(signal.SIGTERM)
    answer = verdict(program)
    assert (answer.done.code, answer.output["decision"]["behavior"]) == (2, "deny")


# R34
@pytest.mark.parametrize(
    "streams",
    [
        *(pytest.param(each, marks=pytest.mark.smoke) for each in ("<&- >&- 2>&-", "2>/dev/full")),
        *("<&-", "0>written.txt", ">&-", "2>&-", ">/dev/full"),
    ],
)
def test_broken_streams_block_the_call(claude: ClaudeCode, streams: str) -> None:
    event = claude.shell.folder / "event.json"
    event.write_text(claude.event("PreToolUse", "Free", {}, "toolu_1"))
    wrong = () if streams in (">&-", ">/dev/full") else ("--undecided", "allow")
    command = shlex.join(claude.shell.command(*claude.hook(*wrong)))
    given = "" if streams[0] in "<0" else f"< {shlex.quote(str(event))}"
    pipe = subprocess.PIPE
    program = claude.shell.program("sh", "-c", f"exec {command} {given} {streams}", stdout=pipe, stderr=pipe, text=True)
    answer = verdict(program)
    assert answer.done.code == 2, answer
    assert "Traceback" not in answer.done.err


def assert_refused(answer: HookResult, *given: object) -> None:
    assert answer.done.code == 2, (given, answer)
    assert answer.done.err.strip(), given
    assert "Traceback" not in answer.done.err, given
    assert answer.output.get("permissionDecision", "deny") == "deny", given


# R34
def test_a_store_or_a_folder_that_cannot_be_used_stops_the_call_and_says_so(claude: ClaudeCode) -> None:
    claude.shell.path.write_bytes(b"not a database" * 1_000)
    broken = claude.ask("Read", {"file_path": "a.txt"}, "toolu_1", "--reads", "claude-code")
    assert (broken.done.code, broken.lets_run) == (2, False)
    (claude.shell.folder / "file").write_text("")
    claude.command_words = ("--notes", str(claude.shell.folder / "file"))
    assert claude.ask("Bash", COMMAND, "toolu_2").done.code == 2


# R34
def test_notes_that_others_could_write_are_not_used(claude: ClaudeCode) -> None:
    folder = claude.shell.folder / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    answer = claude.ask("Bash", COMMAND, "toolu_1", "--notes", str(folder))
    assert answer.done.code == 2
    assert "Other users can write" in answer.reason


# R46
def test_call_without_a_reported_end_is_unknown(claude: ClaudeCode) -> None:
    claude.put_policy("  - {name: free, then: allow}\n")
    assert claude.ask("Bash", COMMAND, "toolu_1", "--lease", "500ms").lets_run
    late = claude.ask("Bash", COMMAND, "toolu_1", "--wait", "30s")
    asked = claude.event("PreToolUse", "Bash", COMMAND, "toolu_1")
    wait_until(lambda: "outcome is unknown" in claude.answer(asked).reason, "the lease is over", pause=0.05)
    assert not late.lets_run
    stopped = claude.ask("Bash", COMMAND, "toolu_2")
    assert stopped.lets_run
    failing = claude.event("PostToolUseFailure", "Bash", COMMAND, "toolu_2", error="stopped", is_interrupt=True)
    assert claude.answer(failing).done.code == 0
    assert claude.ask("Bash", COMMAND, "toolu_3").lets_run
    failing = claude.event("PostToolUseFailure", "Bash", COMMAND, "toolu_3", error="exit 2")
    assert claude.answer(failing).done.code == 0
    assert "exit 2" in claude.ask("Bash", COMMAND, "toolu_3").reason
    by_call = {item["call_id"]: item["status"] for item in claude.list_approvals()}
    assert (by_call["toolu_2"], by_call["toolu_3"]) == ("unknown", "failed")


def test_after_a_tool_an_error_blocks_nothing_and_is_said(claude: ClaudeCode) -> None:
    claude.put_policy("  - {name: free, then: allow}\n")
    assert claude.ask("Bash", COMMAND, "toolu_1").lets_run
    gone = claude.shell.path.rename(claude.shell.folder / "away.db")
    ended = claude.report_result("Bash", COMMAND, "toolu_1", "ok")
    assert (ended.code, ended.out) == (1, "")
    assert "could not record the outcome of this call" in ended.err
    gone.rename(claude.shell.path)


# R54
def test_a_permission_is_asked_for_without_an_id_and_the_end_is_found_by_what_ran(claude: ClaudeCode) -> None:
    edited = {"command": "make deploy DRY=1"}
    program = claude.start(claude.event("PermissionRequest", "Bash", COMMAND, ""))
    claude.decide("edit", "--args", json.dumps(edited))
    decision = verdict(program).output["decision"]
    assert decision == {"behavior": "allow", "updatedInput": edited}
    assert claude.report_result("Bash", edited, "toolu_9", "ok").code == 0
    program = claude.start(claude.event("PermissionRequest", "Bash", COMMAND, ""))
    claude.decide("reject", "--reason", "Enough")
    assert verdict(program).output["decision"] == {"behavior": "deny", "message": "Access denied: Enough"}
    assert [item["status"] for item in claude.list_approvals()] == ["rejected", "succeeded"]


# R54
def test_over_a_server_it_is_the_same(claude: ClaudeCode) -> None:
    key = claude.shell("keys", "create", "--name", "claude", "--role", "agent").out.split()[-1]
    with run_server(claude.shell.url, claude.shell.folder) as server:
        claude.shell.extra = {"INTERLOCK_URL": server.url, "INTERLOCK_KEY": key}
        assert claude.ask("Read", {"file_path": "a.txt"}, "toolu_1", "--reads", "Read").lets_run
        undecided = claude.ask("Bash", COMMAND, "toolu_2", "--wait", "0s")
        assert f"{server.url}/a/{claude.pending_ids()}" in undecided.reason
        asked = [claude.begin("Bash", COMMAND, "toolu_2") for _ in range(2)]
        claude.decide("approve")
        assert sorted(verdict(program).lets_run for program in asked) == [False, True]
        assert claude.report_result("Bash", COMMAND, "toolu_2", "ok").code == 0
    assert [item["status"] for item in claude.list_approvals()] == ["succeeded"]
    assert claude.ask("Bash", COMMAND, "toolu_3", "--wait", "0s").done.code == 2, "the server is gone"


# R54
@pytest.mark.smoke
def test_the_settings_of_the_page_work_as_they_stand(claude: ClaudeCode) -> None:
    (snippet,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)[:1]
    settings = json.loads(snippet)
    (before,), (after,), (failed,) = (
        settings["hooks"][name] for name in ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    )
    assert before["matcher"] == after["matcher"] == failed["matcher"] == "*"
    (hook,) = before["hooks"]
    assert (hook["type"], hook["onFailure"], hook["timeout"]) == ("command", "block", 600)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(claude.shell.folder), "INTERLOCK_DATABASE_URL": ""}

    def run(command: str, event: str) -> CommandResult:
        """As Claude Code does."""
        assert PAGE_DATABASE in command
        words, pipe = ("sh", "-c", command.replace(PAGE_DATABASE, claude.shell.url)), subprocess.PIPE
        program = claude.shell.program(*words, more=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        out, err = program.communicate(event, timeout=TIMEOUT)
        return CommandResult(program.returncode, out, err)

    claude.put_policy("  - {name: free, tools: [Bash], then: allow}\n")
    reading = run(hook["command"], claude.event("PreToolUse", "Read", {"file_path": "a.txt"}, "toolu_1"))
    assert (reading.code, reading.json) == (0, {})
    allowed = run(hook["command"], claude.event("PreToolUse", "Bash", COMMAND, "toolu_2"))
    assert HookResult(allowed).output["updatedInput"] == COMMAND
    for entry in (after, failed):
        event = claude.event("PostToolUse", "Bash", COMMAND, "toolu_2", tool_response="ok")
        assert run(entry["hooks"][0]["command"], event).code == 0
    assert [item["status"] for item in claude.list_approvals()] == ["succeeded"]
