"""The policy: read it, put another in force, and see beforehand what a draft would do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from interlock.config.yaml import plain, read_yaml
from interlock.core.canonical import parse
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import InvalidRequest, NotFound, TooManyRequests
from interlock.core.policy.claims import unbound_keys
from interlock.core.ports import PolicyVersion
from interlock.policy.diff import compare, defaults_of
from interlock.policy.own_file import StalePolicy
from interlock.policy.rehearsal import rehearse
from interlock.presenters.policy import difference_json, explanation_json, rehearsal_json, version_json
from interlock.runtime.durations import parse_duration
from interlock.server.dependencies import ADMINS, Caller, Given, Here, check_match, etag, fails, may, recently
from interlock.server.explain import question_of
from interlock.server.http import Asked, Unsupported, as_invalid, encoded, is_json
from interlock.server.routes.rules import PolicyDiff, RuleInfo, policy_diff, rules_in_words

router = APIRouter(tags=["policy"])

YAML = "application/yaml"
YAMLS = frozenset({b"application/yaml", b"application/x-yaml", b"text/yaml", b"text/x-yaml"})
MOST_CALLS = 100_000  # that one rehearsal looks at
MOST_SECONDS = 20.0
Number = Annotated[int | None, Query(ge=1, le=2**31)]


class Version(BaseModel):
    version: int
    at: str
    author: str
    reason: str
    sha256: str


class StaleFile(BaseModel):
    """The policy file that this server was started with is not in force; `command` would put it back.

    `judged_too` if another file's text is in force instead: the server then judges by both, and the stricter holds.
    """

    file: str
    message: str
    command: str
    judged_too: bool


class VersionList(BaseModel):
    items: list[Version]
    next: str | None = None
    stale: StaleFile | None = None


class PutVersion(Version):
    """`new` is false if this very policy was in force already."""

    new: bool
    warnings: list[str]


class Checked(BaseModel):
    """Whether a policy would load; `problems` say what is wrong, each with its line.

    `details` and `defaults` say in words what it says, and `diff` what differs from what is in force.
    """

    valid: bool
    rules: list[str]
    warnings: list[str]
    problems: list[str]
    sha256: str | None
    details: list[RuleInfo] = []
    defaults: dict[str, str] = {}
    diff: PolicyDiff | None = None


def taking(*kinds: str, by: Callable[[frozenset[str]], dict[str, Any]] = may) -> dict[str, Any]:
    """For admins, with a body of one of these kinds."""
    extra = by(ADMINS)
    schemas = {"application/json": {"type": "object"}, YAML: {}}  # a policy that is wrong is looked at too
    body = {"required": True, "content": {kind: {"schema": schemas[kind]} for kind in kinds}}
    extra["openapi_extra"] |= {"requestBody": body}
    return extra


@router.get(
    "/api/policy",
    responses={200: {"content": {YAML: {"schema": {"type": ["object", "null"]}}}}, **fails(404)},
    response_model=dict[str, object],
    **may(ADMINS),
)
async def show_policy(site: Here, who: Caller, asked: Given, version: Number = None) -> Response:
    """The policy in force, or an earlier version: as it was put there, or as JSON if that is accepted."""
    stored = await site.store.policy(who.workspace)
    newest = stored.version if stored else 0
    if version is not None and not 1 <= version <= newest:
        raise NotFound("There is no such version of the policy. GET /api/policy/versions lists them.", version=version)
    if version is None or stored is None:
        return _as_asked(stored.body if stored else "", newest, asked)
    versions = await site.store.policies(who.workspace, newest - version + 1)
    return _as_asked(versions[-1].body, version, asked)


@router.put("/api/policy", responses=fails(409, 415), **taking(YAML, "application/json", by=recently))
async def put_policy(
    site: Here, who: Caller, asked: Given, reason: Annotated[str, Query(max_length=MAX_COMMENT)] = ""
) -> PutVersion:
    """Puts a policy in force as a new version; one with a mistake changes nothing. With If-Match, only if seen."""
    before = await site.store.policy(who.workspace)
    number = before.version if before else 0
    seen = number if check_match(asked.headers, etag(number)) else None
    with as_invalid():
        loaded, version = await site.workspaces.put_policy(
            who.workspace, _draft(asked), who.name, reason, seen, who.reviewer().trace
        )
    fields: dict[str, Any] = version_json(version)
    return PutVersion(**fields, new=version.version != number, warnings=list(loaded.warnings))


@router.get("/api/policy/versions", responses=fails(), **may(ADMINS))
async def list_versions(site: Here, who: Caller, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> VersionList:
    """Every version that was put in force: when, by whom and why. The newest first."""
    versions = await site.store.policies(who.workspace, limit)
    stale = _stale((await site.workspaces.doors(who.workspace)).stale)
    return VersionList(items=[_version(version) for version in versions], stale=stale)


@router.post("/api/policy/check", responses=fails(415), **taking(YAML, "application/json"))
async def check_policy(site: Here, who: Caller, asked: Given) -> Checked:
    """Does a policy load, and is there anything odd about it? Changes nothing."""
    try:
        with as_invalid():
            loaded = await site.workspaces.draft(who.workspace, _draft(asked))
    except InvalidRequest as error:
        problems = error.message.splitlines()
        return Checked(valid=False, rules=[], warnings=[], problems=problems, sha256=None)
    in_force = (await site.workspaces.doors(who.workspace)).loaded.policy
    loose = unbound_keys(loaded.policy, await site.accounts.keys(who.workspace), site.clock())
    return Checked(
        valid=True,
        rules=[rule.name for rule in loaded.policy.rules],
        warnings=[*loaded.warnings, *([loose] if loose else [])],
        problems=[],
        sha256=loaded.policy.sha256,
        details=rules_in_words(loaded),
        defaults=defaults_of(loaded.policy.defaults),
        diff=policy_diff(compare(in_force, loaded.policy)),
    )


@router.post("/api/policy/explain", responses=fails(415), **taking("application/json"))
async def explain_call(site: Here, who: Caller, asked: Given) -> dict[str, object]:
    """Which rule a call meets, and why: `{"call": {"tool", "args", …}, "policy"?}`. Changes nothing.

    It is judged as a call with an agent key that is bound to nobody; `key` in it says another key, and
    `"embedded": true` that it comes from a program that opens the database itself. `judged_as` says which it was.
    """
    body, doors = _object(asked), await site.workspaces.doors(who.workspace)
    question = question_of(body.get("call", body), site, doors)
    if "call" in body and "policy" in body:
        with as_invalid("/policy"):
            loaded, origin = await site.workspaces.draft(who.workspace, _text(body["policy"])), "the draft"
    else:
        stored = await site.store.policy(who.workspace)
        loaded, origin = doors.loaded, f"version {stored.version}" if stored else "the defaults"
    explained = await asyncio.to_thread(question.explained, loaded.policy, loaded.lines)
    return explanation_json(explained, origin, loaded)


@router.post("/api/policy/rehearse", responses=fails(415, 429), **taking(YAML, "application/json"))
async def rehearse_policy(
    site: Here,
    who: Caller,
    asked: Given,
    since: str = "30d",
    limit: Annotated[int, Query(ge=0, le=1_000)] = 20,
) -> dict[str, object]:
    """Tries a draft on the calls that were recorded, beside what is in force: at most 100,000, or 20 seconds."""
    begin = site.clock() - parse_duration(since)
    with as_invalid():
        new = (await site.workspaces.draft(who.workspace, _draft(asked))).policy
    old = (await site.workspaces.doors(who.workspace)).loaded.policy
    if site.rehearsing.locked():
        raise TooManyRequests("Another rehearsal is running. Try again in a moment.", retry_after=5)
    loop = asyncio.get_running_loop()
    end = loop.time() + MOST_SECONDS
    async with site.rehearsing:
        rehearsed = await rehearse(
            site.store,
            who.workspace,
            (old, new),
            begin,
            limit,
            lambda done, _: done < MOST_CALLS and loop.time() < end,
        )
    return {
        **rehearsal_json(rehearsed, site.clock(), site.settings.storage.kept),
        "diff": difference_json(compare(old, new)),
    }


def _stale(found: StalePolicy | None) -> StaleFile | None:
    if found is None:
        return None
    return StaleFile(file=found.own.origin, message=found.message, command=found.command, judged_too=found.both)


def _draft(asked: Asked) -> str:
    """A policy as YAML, as JSON, or in a JSON object under `policy`."""
    if is_json(asked.headers):
        body = _object(asked)
        return _text(body["policy"]) if "policy" in body else asked.body.decode()
    kind = asked.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind not in YAMLS:
        raise Unsupported("A policy is YAML or JSON: send Content-Type: application/yaml or application/json.")
    try:
        return asked.body.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("The policy is not UTF-8.") from None


def _object(asked: Asked) -> Mapping[str, object]:
    if not is_json(asked.headers):
        raise Unsupported("The body has to be JSON: send Content-Type: application/json.")
    body = parse(asked.body)
    if not isinstance(body, dict):
        raise InvalidRequest("The body has to be a JSON object.")
    return cast(dict[str, object], body)


def _text(policy: object) -> str:
    return policy if isinstance(policy, str) else encoded(policy).decode()


def _as_asked(body: str, version: int, asked: Asked) -> Response:
    headers = {"etag": etag(version), "vary": "accept"}
    accepted = asked.headers.get(b"accept", b"*/*")
    if b"json" not in accepted or b"yaml" in accepted:
        return Response(body, headers=headers, media_type=YAML)
    document = read_yaml(body, lambda line, message: None)
    value = plain(document) if document is not None else None
    return Response(encoded(value or {}), headers=headers, media_type="application/json")


def _version(version: PolicyVersion) -> Version:
    fields: dict[str, Any] = version_json(version)
    return Version(**fields)
