"""A Neo4j server with Graph Data Science without Docker: fetched by Maven, bound to this machine, started and stopped.

The jars are Neo4j's and come from where Maven is set up to look; gniah distributes none of them. `Server` is a server
in a folder of its own; `gniah-load neo4j` is the same on the command line.
"""
