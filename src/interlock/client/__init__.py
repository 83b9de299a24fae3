"""The gate over HTTP, for programs that drive the loop themselves: the same outcomes and errors as its door gives."""

from interlock.client.client import Client
from interlock.client.shapes import Standing
from interlock.client.sync import SyncClient

__all__ = ["Client", "Standing", "SyncClient"]
