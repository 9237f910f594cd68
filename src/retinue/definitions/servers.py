"""The MCP servers that an agent's file names, in each of the ways that people write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from retinue.core.agent import McpServer
from retinue.definitions.nodes import Listing, Node, Scalar, Table
from retinue.definitions.problem import Malformed
from retinue.definitions.values import argv, named_texts, record, table, text, words

READERS = {
    "name": text,
    "type": text,
    "transport": text,
    "command": argv,
    "args": words,
    "env": named_texts,
    "environment": named_texts,
    "url": text,
    "headers": named_texts,
    "tools": words,
}


@dataclass(frozen=True, slots=True)
class Servers:
    defined: tuple[McpServer, ...] = ()
    referred: tuple[str, ...] = ()
    """Names of servers that are defined somewhere else, in a CLI's own settings."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset({*self.referred, *(server.name for server in self.defined)})


def servers(node: Node) -> Servers:
    """A list of tables with a `name`, a table by name, or a list of names and of tables by name."""
    defined: list[McpServer] = []
    referred: list[str] = []
    for name, given in _named(node):
        if given is None:
            referred.append(name)
        elif any(server.name == name for server in defined):
            raise Malformed(given.line, f"the server {name!r} stands twice")
        else:
            defined.append(_server(name, given))
    return Servers(tuple(defined), tuple(referred))


def _named(node: Node) -> Iterator[tuple[str, Table | None]]:
    if isinstance(node, Table):
        yield from ((name, table(entry.value)) for name, entry in node.entries.items())
        return
    for item in node.items if isinstance(node, Listing) else (node,):
        match item:
            case Scalar():
                yield text(item), None
            case Table() if "name" in item.entries:
                yield text(item.entries["name"].value), item
            case Table():
                yield from _named(item)
            case _:
                raise Malformed(item.line, "a server is a name, or a table with its name and command or url")


def _server(name: str, node: Table) -> McpServer:
    given = record(node, READERS)
    command, url = given.get("command", ()), given.get("url")
    if bool(command) == (url is not None):
        raise Malformed(node.line, f"the server {name!r} needs a command or a url, one of them")
    return McpServer(
        name=name,
        argv=(*command, *given.get("args", ())) if command else (),
        env=given.get("env") or given.get("environment") or {},
        url=url,
        headers=given.get("headers", {}),
        tools=given.get("tools"),
    )
