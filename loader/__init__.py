"""From S2AG shards to a graph: filtering, import into a store, exploration (`gniah-load`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gniah.loader.filtering import filter_graph
    from gniah.loader.shipped import RfcShards, rfc_shards

__all__ = ["RfcShards", "filter_graph", "rfc_shards"]


def __getattr__(name: str) -> Any:
    # Late, so that `gniah-load --help` does not wait for the database.
    if name == "filter_graph":
        from gniah.loader.filtering import filter_graph

        return filter_graph
    if name in ("RfcShards", "rfc_shards"):
        from gniah.loader import shipped

        return getattr(shipped, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
