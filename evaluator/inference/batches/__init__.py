"""Batch interfaces: requests that a provider answers within a day, at a lower price, into the same pool."""
