"""The tools that a process knows by itself: those of packs and MCP servers, and the configured actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interlock.chat.toolbox import Toolbox
from interlock.config.models import Action, is_ready
from interlock.core.call import ToolSpec
from interlock.core.names import without_case


class Registered:
    def __init__(self, actions: Mapping[str, Action], toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._actions = actions
        self._odd = tuple(name for name in actions if not name.isascii())
        self._by_case = {without_case(name): actions[name] for name in reversed(list(actions))}

    def action(self, name: str) -> Action | None:
        """A configured action, by its name in any case."""
        return self._actions.get(name) or self._by_case.get(without_case(name))

    def spec(self, workspace: str, tool: str) -> ToolSpec | None:
        """A tool of a pack or of a configured MCP server, or a configured action; in any case, as rules read names.

        Its preview is for the agent of the chat: another program's call does not make the server look things up.
        """
        return self.spec_of(workspace, tool, self.action(tool))

    def spec_of(self, workspace: str, tool: str, action: Action | None) -> ToolSpec | None:
        """The same; `action` is the one of its name."""
        if action is not None and not is_ready(action):
            return ToolSpec(tool, "write", action.schema)
        known = self._toolbox.spec_like(workspace, tool)
        return None if known is None else replace(known, name=tool, preview=None)

    def names(self, workspace: str) -> set[str]:
        """Those of actions that nobody configured are among them."""
        return {*self._toolbox.all(workspace), *self._actions}

    def odd_names(self, workspace: str) -> tuple[str, ...]:
        """Those that are not plain ASCII, so that a plain name could be mistaken for one of them."""
        return (*self._toolbox.odd_names(workspace), *self._odd)

    def specs(self, workspace: str) -> dict[str, ToolSpec]:
        found = {name: self.spec(workspace, name) for name in self.names(workspace)}
        return {name: spec for name, spec in found.items() if spec is not None}
