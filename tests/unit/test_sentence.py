"""Sentences made from a tool's name and arguments, and templates of the configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import RedactedArgs, ToolSpec, redact
from interlock.core.canonical import canonical
from interlock.core.declared import AgentText, call_sentence, stored_preview
from interlock.core.sentence import (
    MAX_TEMPLATE,
    GeneratedSentence,
    TemplatePreview,
    arguments_sentence,
    exact_title,
    fill_arguments,
    template_problem,
    tool_title,
)


def redact_args(args: dict[str, object], spec: ToolSpec) -> RedactedArgs:
    return redact(canonical(args), spec, b"key")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("delete_file", "Delete file"),
        ("refund", "Refund"),
        ("create_pull_request_review", "Create pull request review"),
        ("run_sql", "Run run_sql"),
        ("run", "Run run"),
        ("runner_stop", "Runner stop"),
        ("deleteFile", "Run deleteFile"),
        ("delete-file", "Run delete-file"),
        ("delete__file", "Run delete__file"),
        ("delete file", 'Run "delete file"'),
        ("this_is_safe_and_approved", "Run this_is_safe_and_approved"),
        ("d\u0435lete_file", "Run d\u0435lete_file"),
        ("a" * 61, f'Run "{"a" * 60}"… (61 characters)'),
    ],
)
def test_the_name_of_a_known_tool_reads_as_words_if_it_is_some(name: str, title: str) -> None:  # R2
    assert tool_title(name) == title


@given(st.text("_-arun Z", max_size=7), st.text("_-arun Z", max_size=7))
def test_two_tools_never_have_the_same_title(one: str, other: str) -> None:  # R2
    if one != other:
        assert tool_title(one) != tool_title(other)
        assert tool_title(one) != exact_title(other)


def test_a_tool_without_words_of_its_own_says_what_it_is_called_with() -> None:  # R2
    spec = ToolSpec("delete_file", "destructive")
    assert call_sentence(spec, redact_args({"path": "a.txt"}, spec)) == "Delete file: path = a.txt"
    assert spec.sentence({"path": "a.txt"}) == "Delete file: path = a.txt"
    assert spec.sentence({}) == "Delete file"


MAIL = {"to": "ann", "body": "Hi", "cc": "bob", "bcc": "eve"}


@pytest.mark.parametrize(
    ("names", "required", "listed"),
    [
        (["to", "cc", "body"], ["body"], ["to", "cc", "body", "bcc"]),
        (["body", "cc", "to"], ["to", "other", "body"], ["to", "body", "cc", "bcc"]),  # sorted: the order was lost
        (["body", "cc", "to"], None, ["body", "cc", "to", "bcc"]),
    ],
)
def test_arguments_are_listed_in_the_order_of_a_trusted_schema(  # R2
    names: list[str], required: list[str] | None, listed: list[str]
) -> None:
    schema = {"properties": {name: {} for name in names}, **({"required": required} if required else {})}
    spec = ToolSpec("send_mail", schema=schema)
    assert call_sentence(spec, redact_args({**MAIL}, spec)) == "Send mail: " + ", ".join(
        f"{n} = {MAIL[n]}" for n in listed
    )
    claimed = replace(spec, declared=True)
    assert call_sentence(claimed, redact_args({**MAIL}, spec)).startswith("Run send_mail: bcc = eve, body = Hi")


def test_no_order_hides_an_argument_that_another_shows() -> None:  # R2
    args = {f"n{n}": "x" for n in range(9)} | {"amount": 1_000_000}
    said = []
    for names in (list(args), ["amount", *args]):
        spec = ToolSpec("pay", schema={"properties": {name: {} for name in names}})
        said.append(call_sentence(spec, redact_args(args, spec)))
    assert said[0] == said[1]
    assert said[0].startswith("Pay: amount = 1000000, n0 = x")


def test_the_name_that_an_agent_chose_never_reads_as_words_of_the_server() -> None:  # R2
    spec = ToolSpec("harmless_read", "write", describe=AgentText("Reads."), declared=True)
    assert call_sentence(spec, redact_args({}, spec)) == "Run harmless_read"


def test_a_generated_sentence_has_its_title_and_hides_secrets() -> None:  # R2
    spec = ToolSpec("files_login", describe=GeneratedSentence('Login (MCP server "files")'), secret=("password",))
    args: dict[str, object] = {"password": "hunter2", "user": "ann"}
    said = call_sentence(spec, redact_args(args, spec))
    assert said == 'Login (MCP server "files"): password = (hidden), user = ann'
    assert spec.describe({"user": "ann"}) == 'Login (MCP server "files"): user = ann'  # type: ignore[operator]
    assert arguments_sentence("Login", {"a/b": 1}, {"/a~1b"}) == 'Login: "a/b" = (hidden)'


def test_a_tools_own_sentence_and_preview_show_no_secret() -> None:  # R2
    spec = ToolSpec("login", "write", describe="Log in as {user} with {password}, {none}", secret=("/password", "none"))
    args: dict[str, object] = {"user": "ann", "password": "hunter22", "none": None}
    shown = redact_args(args, spec)
    assert call_sentence(spec, shown) == "Log in as ann with (hidden), None"
    assert stored_preview(spec, canonical(args), shown, "hunter22 opens it") == "[hidden] opens it"
    assert stored_preview(spec, canonical(args), shown, "") == ""


def test_a_template_is_a_preview_that_looks_nothing_up() -> None:  # R2
    preview = TemplatePreview("{path!r} is removed from {server}; {reason}")
    assert preview({"path": "a", "server": "b"}) == "'a' is removed from b; (not given)"


def test_the_arguments_of_a_look_up_are_those_of_the_call() -> None:  # R2
    templates = {"path": "{path}", "depth": 1, "note": "for {user!r}", "size": "{size}", "first": "{path[0]}"}
    args = {"path": ["a", "b"], "user": "ann"}
    assert fill_arguments(templates, args) == {"path": ["a", "b"], "depth": 1, "note": "for 'ann'", "first": "a"}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("Delete {path!r} of {owner[name]:>20}", ""),
        ("{{no argument}}", ""),
        ("Delete {pth}", 'there is no argument {pth}; did you mean "path"?'),
        ("Delete {zzz}", "there is no argument {zzz}; it is one of owner, path"),
        ("Delete {0}", "there is no argument {0}; it is one of owner, path"),
        ("Delete {}", "it is no template ({} names no argument); write {{ and }} for braces"),
        ("Delete {", "it is no template (Single '{' encountered in format string); write {{ and }} for braces"),
        (
            "{path:>{owner}}",
            "it is no template (a width or format is not taken from an argument); write {{ and }} for braces",
        ),
        ("x" * (MAX_TEMPLATE + 1), "it is longer than 2,000 characters"),
    ],
)
def test_a_template_is_checked_by_the_names_of_the_arguments(template: str, problem: str) -> None:  # R2
    assert template_problem(template, ["path", "owner"]) == problem


def test_where_any_argument_may_come_only_the_form_of_a_template_is_checked() -> None:
    assert template_problem("Delete {anything}", None) == ""
    assert template_problem("Delete {0}", None) == "there is no argument {0}"
    assert template_problem("Delete {path}", ()) == "there is no argument {path}"
