"""The bottom room: what crosses a file boundary, and nothing that knows another room.

Records, canonical JSON, random streams, manifests, files that appear whole, errors with exit codes,
and the registry of benchmark families.
"""
