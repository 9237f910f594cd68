"""The resources of the server: runs, their logs and results, reports, artifacts and handoffs.

The lists of resources and templates never change, so that they are among a host's first answers. What exists
is in resources such as `retinue://runs`. Long texts are cut into pages; a page ends with the address of the
next one. Also completes the arguments of templates and prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import build_resolver_plans, find_resolved_parameters, resolve_arguments
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Completion,
    InputRequiredResult,
    PromptReference,
    Resource as ListedResource,
    ResourceTemplate as ListedTemplate,
    ResourceTemplateReference,
)

from retinue.core import InvalidInput, RetinueError, compact_json
from retinue.server.core_tools import RequestService
from retinue.server.icons import icons
from retinue.service import Service, read_log

SCHEME = "retinue"
JSON, MARKDOWN, TEXT = "application/json", "text/markdown", "text/plain"
MAX_COMPLETIONS = 100
LISTED_RUNS = 50
MAX_DIGITS = 15
"""Digits of a cursor; no text has more characters."""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """A resource, or a template for resources, that the server offers."""

    address: str
    name: str
    title: str
    description: str
    mime_type: str
    group: str
    """The group of tools whose work it shows. It is offered if the group is on."""


KINDS = (
    ResourceKind("runs", "runs", "Runs", "The newest runs, one row for each request.", JSON, "runs"),
    ResourceKind(
        "runs/{id}", "run", "Run", "A run's status, result, limits and open questions.", JSON, "runs"
    ),
    ResourceKind(
        "runs/{id}/log{?cursor}",
        "log",
        "Log of a run",
        "A run's output: the end, or a page from the cursor on.",
        TEXT,
        "runs",
    ),
    ResourceKind(
        "runs/{id}/result{?cursor}", "result", "Result of a run", "A run's whole result.", TEXT, "runs"
    ),
    ResourceKind("reports", "reports", "Reports", "The newest reports of research.", JSON, "research"),
    ResourceKind(
        "reports/{id}{?cursor}", "report", "Report", "A whole report of research.", MARKDOWN, "research"
    ),
    ResourceKind("artifacts", "artifacts", "Artifacts", "The memos and handoffs.", JSON, "research"),
    ResourceKind(
        "artifacts/{name}{?cursor}", "artifact", "Artifact", "A memo or a handoff.", MARKDOWN, "research"
    ),
    ResourceKind("handoffs", "handoffs", "Handoffs", "The handoffs.", JSON, "research"),
    ResourceKind("handoffs/{name}{?cursor}", "handoff", "Handoff", "A handoff.", MARKDOWN, "research"),
)
"""All kinds. An address with `{` is a template."""


class HostResources:
    """The resources of the groups that are switched on."""

    def __init__(self, groups: Collection[str]) -> None:
        # Runs are what the agents group starts, so its resources come with either group.
        self._kinds = [
            kind for kind in KINDS if kind.group in groups or (kind.group == "runs" and "agents" in groups)
        ]
        self._resolved = find_resolved_parameters(_with_service)
        self._plans = build_resolver_plans(self._resolved, set())

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def listed(self) -> list[ListedResource]:
        return [
            ListedResource(uri=uri_of(kind.address), **_shown(kind))
            for kind in self._kinds
            if "{" not in kind.address
        ]

    def templates(self) -> list[ListedTemplate]:
        return [
            ListedTemplate(uri_template=uri_of(kind.address), **_shown(kind))
            for kind in self._kinds
            if "{" in kind.address
        ]

    async def read(
        self, uri: str, context: Context[Service, Any]
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource. Raises `MCPError` if there is none at this address."""
        resolved = await resolve_arguments(self._resolved, self._plans, {}, context)
        if isinstance(resolved, InputRequiredResult):  # the host is asked for its roots first
            return resolved
        try:
            kind, name, cursor = self._parse(uri)
            content = await _read(resolved["service"], kind, name, cursor)
        except RetinueError as error:
            wrong_address = isinstance(error, InvalidInput) or error.code in ("run_unknown", "root_unknown")
            message = f"{error.message}; {error.hint}" if error.hint else error.message
            raise MCPError(
                INVALID_PARAMS if wrong_address else INTERNAL_ERROR,
                message,
                {"uri": uri, "error": error.as_dict()},
            ) from None
        return [ReadResourceContents(content=content, mime_type=kind.mime_type)]

    def _parse(self, uri: str) -> tuple[ResourceKind, str, int | None]:
        """The kind of an address, the id or name in it, and the cursor."""
        parts = urlsplit(uri)
        path = f"{parts.netloc}{parts.path}".rstrip("/").split("/")
        name = unquote(path[1]) if len(path) > 1 else ""
        shape = "/".join([path[0], *(["*"] if len(path) > 1 else []), *path[2:]])
        for kind in self._kinds:
            pattern = kind.address.partition("{?")[0].replace("{id}", "*").replace("{name}", "*")
            if parts.scheme == SCHEME and pattern == shape:
                return kind, name, _cursor(parts.query)
        known = ", ".join(uri_of(kind.address) for kind in self._kinds)
        raise InvalidInput(f"no resource has the address {uri[:200]!r}", hint=f"the resources are: {known}")


def uri_of(address: str) -> str:
    return f"{SCHEME}://{address}"


def _shown(kind: ResourceKind) -> dict[str, Any]:
    return {
        "name": kind.name,
        "title": kind.title,
        "description": kind.description,
        "mime_type": kind.mime_type,
        "icons": icons(kind.group),
    }


def _with_service(service: RequestService) -> None:
    """Declares what reading a resource needs: the service, with the roots of the host."""


def _cursor(query: str) -> int | None:
    given = parse_qs(query, keep_blank_values=True)
    numbers = given.pop("cursor", [])
    if given or not all(each.isascii() and each.isdigit() for each in numbers):
        raise InvalidInput(
            f"not a query of a resource: {query[:80]!r}", hint="use ?cursor=NUMBER, or no query"
        )
    return int(numbers[-1][:MAX_DIGITS]) if numbers else None


async def _read(service: Service, kind: ResourceKind, name: str, cursor: int | None) -> str:
    """The content of a resource, at most one page of it."""
    match kind.name:
        case "runs":
            listed = service.runs.list(limit=LISTED_RUNS)
            return compact_json(
                listed | {"runs": [_with_uri(row, "runs", "run_id") for row in listed["runs"]]}
            )
        case "run":
            return compact_json(service.runs.status(name))
        case "log":
            page = read_log(service.runs, name, cursor=cursor)
            cut = f"[{page['cut']}]\n" if "cut" in page else ""
            return cut + page["log"] + _more(page["more"], f"runs/{name}/log", page["cursor"])
        case "result":
            page = read_log(service.runs, name, stream="result", cursor=cursor)
            return page["log"] + _more(page["more"], f"runs/{name}/result", page["cursor"])
        case _:
            return await _read_document(service, kind, name, cursor)


async def _read_document(service: Service, kind: ResourceKind, name: str, cursor: int | None) -> str:
    from retinue.service import list_documents, read_document  # loads the research roles

    folder = cast("Any", kind.address.partition("/")[0].partition("{")[0])
    if not name:
        rows = await list_documents(service, folder)
        return compact_json(
            {folder: [_with_uri(row, folder, "id" if "id" in row else "name") for row in rows]}
        )
    page = await read_document(service, folder, name, cursor or 0)
    return page.text + _more(page.next is not None, f"{folder}/{quote(name)}", page.next)


def _with_uri(row: Mapping[str, Any], folder: str, key: str) -> dict[str, Any]:
    return {"uri": uri_of(f"{folder}/{quote(row[key])}"), **row}


def _more(more: bool, address: str, cursor: int | None) -> str:
    """The last line of a page that is not the last one."""
    return f"\n[more: {uri_of(address)}?cursor={cursor}]" if more else ""


async def complete_argument(
    service: Service, ref: PromptReference | ResourceTemplateReference, argument: str, value: str
) -> Completion | None:
    """The values of an argument of a prompt or a template that begin with `value`; None for others."""
    if isinstance(ref, PromptReference):
        found = _prompt_values(service, ref.name, argument)
    else:
        address = ref.uri.removeprefix(f"{SCHEME}://")
        found = await _template_values(service, address.partition("/")[0], argument)
    if found is None:
        return None
    values = [each for each in found if each.startswith(value)]
    shown = values[:MAX_COMPLETIONS]
    return Completion(values=shown, total=len(values), has_more=len(shown) < len(values))


def _prompt_values(service: Service, prompt: str, argument: str) -> Iterable[str] | None:
    values: dict[tuple[str, str], Callable[[], Iterable[str]]] = {
        ("agent", "name"): service.agents.names,
        ("team", "name"): lambda: [each["name"] for each in service.workflows.list_defined("team")],
    }
    found = values.get((prompt, argument))
    return None if found is None else found()


async def _template_values(service: Service, folder: str, argument: str) -> Iterable[str] | None:
    if folder == "runs" and argument == "id":
        return [row["run_id"] for row in service.runs.list(limit=MAX_COMPLETIONS)["runs"]]
    if folder in ("reports", "artifacts", "handoffs") and argument in ("id", "name"):
        from retinue.service import list_documents

        rows = await list_documents(service, cast("Any", folder))
        return [row["id"] if folder == "reports" else row["name"] for row in rows]
    return None
