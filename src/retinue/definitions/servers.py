"""The MCP servers that an agent's file names, in each of the ways that people write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from retinue.core import McpServer
from retinue.definitions.nodes import ListNode, Node, ScalarNode, TableNode
from retinue.definitions.problem import MalformedDefinition, each
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
    defined: dict[str, McpServer] = {}

    def read(item: tuple[str | None, Node]) -> McpServer | str:
        name, given = item
        if name is None and isinstance(given, ScalarNode):
            return text(given)
        if name is None and not isinstance(given, TableNode):
            raise MalformedDefinition(
                given.line, "a server is a name, or a table with its name and command or url"
            )
        server = _server(name, table(given))
        if defined.setdefault(server.name, server) is not server:
            raise MalformedDefinition(given.line, f"the server {server.name!r} stands twice")
        return server

    found = each(read, _listed(node))
    return Servers(tuple(defined.values()), tuple(name for name in found if isinstance(name, str)))


def _listed(node: Node) -> Iterator[tuple[str | None, Node]]:
    """Each server, with its name where that stands before it."""
    if isinstance(node, TableNode):
        yield from ((name, entry.value) for name, entry in node.entries.items())
        return
    for item in node.items if isinstance(node, ListNode) else (node,):
        if isinstance(item, TableNode) and "name" not in item.entries:
            yield from _listed(item)
        else:
            yield None, item


def _server(key: str | None, node: TableNode) -> McpServer:
    given = record(node, READERS, "a server")
    name = given["name"] if key is None else key
    command, url = given.get("command", ()), given.get("url")
    if bool(command) == (url is not None):
        raise MalformedDefinition(node.line, f"the server {name!r} needs a command or a url, one of them")
    return McpServer(
        name=name,
        argv=(*command, *given.get("args", ())) if command else (),
        env=given.get("env") or given.get("environment") or {},
        url=url,
        headers=given.get("headers", {}),
        tools=given.get("tools"),
    )
