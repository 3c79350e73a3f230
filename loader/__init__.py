"""From S2AG shards to a graph: filtering, import into a store, exploration (`gniah-load`)."""

from __future__ import annotations

from gniah.loader.filtering import filter_graph
from gniah.loader.shipped import RfcShards, rfc_shards

__all__ = ["RfcShards", "filter_graph", "rfc_shards"]
