"""E-mail, over SMTP: a mail to each person who may decide, with a link that shows the call and decides nothing.

Settings: `host`, `port`, `tls` (starttls, implicit, or none to this machine), `ca_file` for a mail server of one's own
authority, `user`, `password`, `from`, `reply_to`. With `to`, a list of addresses, the mails go to these instead of to
people, and their links are nobody's. `codes: false` keeps people from signing in with a code that is mailed to them.
"""

from interlock.notify.channels.email.channel import MEANS, SETTINGS, connect

__all__ = ["MEANS", "SETTINGS", "connect"]
