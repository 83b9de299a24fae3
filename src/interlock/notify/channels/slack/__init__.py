"""Slack: a message with buttons in a channel, forms to edit, answer and reject, and the same message when it is over.

Settings: `token` of the bot; `signing_secret` for clicks that Slack sends to us, or `app_token` for a connection that
we open to Slack (Socket Mode); without either the message has a link and no buttons. `channel` is where messages go
that belong to no other place; `url` is another API, `allow_private` lets it be in your own network.
"""

from interlock.notify.channels.slack.channel import CAPABILITIES, SETTINGS, connect

__all__ = ["CAPABILITIES", "SETTINGS", "connect"]
