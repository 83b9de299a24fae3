"""Slack: a message with buttons in a channel, modals to edit, answer and reject, updated in place when it ends.

Settings: `token` of the bot; `signing_secret` for interactions that Slack sends to us, or `app_token` for a connection
that we open to Slack (Socket Mode); without either the message has a link and no buttons. `channel` is the default
channel; `url` is another API endpoint, `allow_private` allows it in your own network.
"""

from interlock.notify.channels.slack.channel import CAPABILITIES, SETTINGS, connect

__all__ = ["CAPABILITIES", "SETTINGS", "connect"]
