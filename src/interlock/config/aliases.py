"""Settings in the spelling of the common `approval_engine` template, read as Interlock's own.

They are renamed before anything else is read, so that every check, message and default applies to them too. A setting
that is given in both spellings has to have one value. docs/configuration.md lists the spellings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from interlock.config.yaml import YamlNode, YamlReader, is_unset, to_plain
from interlock.core.errors import InvalidRequest
from interlock.runtime.durations import format_duration, parse_duration

TEMPLATE_SECTION = "approval_engine"
DATABASE_TYPES = {"sqlite": "sqlite", "postgres": "postgresql", "postgresql": "postgresql"}
URL_PREFIXES = {"sqlite": "sqlite:///", "postgresql": "postgresql://"}
Members = dict[str, YamlNode]


class Aliases(NamedTuple):
    """What the aliases set besides renamed settings: `expires_in` for policies without one, and notes for people."""

    expires_in: int | None = None
    notes: tuple[str, ...] = ()


def resolve_aliases(reader: YamlReader, document: YamlNode, *, has_url: bool) -> Aliases:
    """Rename the aliases in a document; `has_url`: the database is named outside of the file."""
    if not isinstance(document.value, dict):
        return Aliases()
    resolver = _AliasResolver(reader, document.value)
    resolver.unwrap_template()
    expires_in = resolver.resolve_storage(has_url=has_url)
    resolver.resolve_escalation()
    return Aliases(expires_in, tuple(f"line {line}: {note}" for line, note in sorted(resolver.notes)))


@dataclass(slots=True)
class _AliasResolver:
    reader: YamlReader
    top: Members
    notes: list[tuple[int, str]] = field(default_factory=list)

    def unwrap_template(self) -> None:
        """Move the sections of the template to the top, where the sections of this file are."""
        template = self._take(self.top, TEMPLATE_SECTION, TEMPLATE_SECTION)
        if template is None:
            return
        if not isinstance(template.value, dict):
            self.reader.add_problem(template.line, f"{TEMPLATE_SECTION} must be a mapping of sections")
            return
        self.notes.append((template.line, f"the sections of {TEMPLATE_SECTION} are read as sections of this file"))
        for key, item in template.value.items():
            self._put(self.top, key, item, TEMPLATE_SECTION)

    def resolve_storage(self, *, has_url: bool) -> int | None:
        """Rename the settings of the storage; returns the time from `ttl_hours`."""
        section = self._section("storage")
        if section is None:
            return None
        kind, url = self._take(section, "type", "storage"), self._take(section, "connection_string", "storage")
        if url is not None:
            self.notes.append((url.line, "storage.connection_string is storage.url"))
            self._put(section, "url", url, "storage", "connection_string")
        if kind is not None:
            self._check_type(kind, section.get("url"), has_url=has_url)
        if (table := self._take(section, "table", "storage")) is not None:
            self.notes.append((table.line, "storage.table is ignored: the tables of Interlock have names of their own"))
        ttl = self._take(section, "ttl_hours", "storage")
        return None if ttl is None else self._expires_in(ttl)

    def resolve_escalation(self) -> None:
        section = self._section("escalation")
        if section is None:
            return
        if (hours := self._take(section, "auto_reject_after_hours", "escalation")) is not None:
            self._put_hours(section, hours)
        if (channel := self._take(section, "escalation_channel", "escalation")) is not None:
            self.notes.append((channel.line, "escalation.escalation_channel is escalation.channel"))
            self._put(section, "channel", channel, "escalation", "escalation_channel")

    def _put_hours(self, section: Members, hours: YamlNode) -> None:
        window = self.reader.node_hours(hours, "auto_reject_after_hours")
        if window is None:
            return
        text, own = format_duration(window), section.get("auto_reject_after")
        self.notes.append((hours.line, f"escalation.auto_reject_after_hours is escalation.auto_reject_after: {text}"))
        if own is None or _milliseconds(own) != window:
            self._put(section, "auto_reject_after", YamlNode(text, hours.line), "escalation", "auto_reject_after_hours")

    def _expires_in(self, ttl: YamlNode) -> int | None:
        """The time after which pending calls expire. A policy in this file must not say otherwise."""
        window = self.reader.node_hours(ttl, "ttl_hours")
        if window is None:
            return None
        self.notes.append(
            (
                ttl.line,
                f"storage.ttl_hours is defaults.expires_in of the policy, if it gives none: {format_duration(window)}",
            )
        )
        policy = self._section("policy") or {}
        defaults = policy.get("defaults")
        own = defaults.value.get("expires_in") if defaults and isinstance(defaults.value, dict) else None
        if own is not None and _milliseconds(own) != window:
            self._add_conflict(ttl, "storage.ttl_hours", own, "defaults.expires_in of the policy")
        return window

    def _check_type(self, kind: YamlNode, url: YamlNode | None, *, has_url: bool) -> None:
        database = DATABASE_TYPES.get(kind.value.lower()) if isinstance(kind.value, str) else None
        if database is None:
            self.reader.add_problem(
                kind.line, "storage.type is one of sqlite and postgresql; nothing else is supported"
            )
        elif url is None:
            if database != "sqlite" and not has_url:
                self.reader.add_problem(
                    kind.line, f"storage.type is {database}: give its connection_string, {URL_PREFIXES[database]}…"
                )
        elif isinstance(url.value, str) and DATABASE_TYPES.get(url.value.partition("://")[0].lower()) != database:
            self.reader.add_problem(
                kind.line,
                f"storage.type is {database}, but the address on line {url.line} does not begin with "
                f"{URL_PREFIXES[database]}",
            )

    def _section(self, name: str) -> Members | None:
        """The members of a section; None if it is missing, or no mapping, which is reported when it is read."""
        value = self.top[name].value if name in self.top else None
        return value if isinstance(value, dict) else None

    def _take(self, members: Members, key: str, what: str) -> YamlNode | None:
        """Remove and return an alias; None if it is not given."""
        item = members.pop(key, None)
        if item is None or is_unset(item):
            return None
        if item.value in (None, ""):
            name = key if what == key else f"{what}.{key}"
            self.reader.add_problem(item.line, f"{name} is empty; give it a value or remove the key")
            return None
        return item

    def _put(self, members: Members, key: str, item: YamlNode, where: str, alias: str = "") -> None:
        """Set a setting, member by member; it may be there already with the same value."""
        own = members.get(key)
        if own is None:
            members[key] = item
        elif isinstance(own.value, dict) and isinstance(item.value, dict):
            for name, inner in item.value.items():
                self._put(own.value, name, inner, f"{where}.{key}")
        elif to_plain(own) != to_plain(item):
            outer = where.removeprefix(TEMPLATE_SECTION).removeprefix(".")
            self._add_conflict(item, f"{where}.{alias or key}", own, f"{outer}.{key}" if outer else key)

    def _add_conflict(self, item: YamlNode, alias: str, own: YamlNode, name: str) -> None:
        """Report both lines and no values: they may be secrets."""
        self.reader.add_problem(
            item.line, f"{alias} and {name} (line {own.line}) are the same setting with two values; keep one of them"
        )


def _milliseconds(item: YamlNode) -> int | None:
    try:
        return parse_duration(item.value) if isinstance(item.value, str) else None
    except InvalidRequest:
        return None
