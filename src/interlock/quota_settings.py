"""How much the configuration file lets each agent key ask for."""

from __future__ import annotations

from interlock.configuration import Quotas
from interlock.core.identity import MAX_QUOTA
from interlock.reading.reader import Reader
from interlock.reading.yaml_lines import Fields


def read_quotas(read: Reader, server: Fields, wanted: str = "") -> Quotas:
    """`wanted` is from the environment: `off` is for load tests, which ask as fast as they can."""
    fields, base = read.section(server, "quotas", ("per_minute", "pending")), Quotas()
    if wanted == "off":
        return Quotas(0, 0)
    per_minute = read.whole(fields, "per_minute", base.per_minute, 0, MAX_QUOTA)
    return Quotas(per_minute, read.whole(fields, "pending", base.pending, 0, MAX_QUOTA))
