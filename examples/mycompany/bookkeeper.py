"""An agent with its lock at the top of the module, as programs have it. Its tests are in test_bookkeeper.py."""

from pathlib import Path

from interlock import CallRefused, Interlock

lock = Interlock(
    "sqlite:///approvals.db", policy=Path(__file__).with_name("policy.yaml"), agent="bookkeeper", user="rita"
)
ledger: list[tuple[str, int]] = []


@lock.tool(effect="read")
def balance() -> int:
    return sum(amount for _, amount in ledger)


@lock.tool(effect="write", describe="Pay {amount} to {to}")
def pay(to: str, amount: int) -> str:
    ledger.append((to, -amount))
    return f"paid {amount} to {to}"


@lock.tool(effect="destructive")
def close_account(name: str) -> None: ...


def settle(to: str, amount: int) -> str:
    """What the agent does with an invoice."""
    try:
        return pay(to, amount)
    except CallRefused as refused:
        return f"not paid: {refused.result['reason']}"


async def file_invoice() -> str:
    folder = await lock.ask("Which folder?", choices=["2026", "2027"])
    return f"filed under {folder}"
