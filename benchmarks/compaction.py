"""How much smaller a report is than the files it stands for, and whether it still names the right ones.

Takes the sets and repositories of `retrieval.py`. An agent without us is taken to read the files of the
first five places; the ratio is the tokens of the report to the tokens of those files, both estimated.

    python -m benchmarks.compaction SETS REPOS [--only SET] [--first N]
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks.retrieval import Query, checkouts, cpu, over_sets
from retinue.config import Settings
from retinue.core import Reference, Root, Stop, estimate_tokens
from retinue.redaction import SecretRedactor
from retinue.service import ResearchRequest, Service, make_indexes, research_codebase
from retinue.store import Reports

READ = 5


@dataclass(frozen=True, slots=True)
class Measured:
    tokens: int
    instead_of: int
    named: int
    gold: int
    cpu: float

    @property
    def ratio(self) -> float:
        return self.tokens / self.instead_of


def paths_of(report: dict[str, Any], role: str) -> list[str]:
    references = report.get(role, {}).get("value", {}).get("references", ())
    return list(dict.fromkeys(Reference.parse(reference).path for reference in references))


def tokens_below(tree: Path, paths: Iterable[str]) -> int:
    return sum(estimate_tokens((tree / path).read_text("utf-8", "replace")) for path in paths)


async def measured(service: Service, tree: Path, query: Query) -> Measured:
    before = cpu()
    report: dict[str, Any] = await research_codebase(service, ResearchRequest(question=query.question))
    spent = cpu() - before
    found = paths_of(report, "locator")
    named = {*found, *paths_of(report, "analyzer"), *paths_of(report, "patterns")}
    tokens = estimate_tokens(json.dumps(report, ensure_ascii=False, indent=2))
    read = tokens_below(tree, found[:READ] or sorted(query.gold))
    return Measured(tokens, read, len(query.gold & named), len(query.gold), spent)


def run(queries: list[Query], repos: Path, work: Path) -> list[Measured]:
    found: list[Measured] = []
    for tree, asked in checkouts(queries, repos, work):
        service = Service(
            roots=(Root.at(tree),),
            redactor=SecretRedactor(),
            settings=Settings(data_dir=work / "data"),
            open_reports=lambda: Reports(work / "data"),
        )
        make_indexes(service, Stop())  # as a server would have behind its first answer
        found += [anyio.run(measured, service, tree, query) for query in asked]
    return found


def show(name: str, found: list[Measured]) -> None:
    ratios = sorted(one.ratio for one in found)
    tokens = sorted(one.tokens for one in found)
    named, gold = sum(one.named for one in found), sum(one.gold for one in found)
    some = sum(1 for one in found if one.named)
    print(f"{name}: {len(found)} questions")
    print(f"  tokens of a report: median {tokens[len(tokens) // 2]}, most {tokens[-1]}")
    print(f"  ratio to the files of the first {READ} places: median {statistics.median(ratios):.3f}")
    print(f"  right files named: {100 * named / gold:.1f} %; at least one: {100 * some / len(found):.1f} %")
    print(f"  CPU s a report: median {statistics.median(one.cpu for one in found):.2f}")


if __name__ == "__main__":
    raise SystemExit(over_sets(__doc__, run, show))
