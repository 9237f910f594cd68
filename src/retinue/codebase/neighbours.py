"""What stands near the strongest files: those that import them, are imported by them, or lie beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from retinue.codebase.evidence import Detail
from retinue.codebase.mentions import PathTable

_STRONGEST = 20
_BESIDE = 10


def neighbourhood(
    scores: Mapping[int, float], details: Mapping[int, Detail], paths: Sequence[str]
) -> dict[str, dict[int, float]]:
    """From a first judgement of the shortlist, three signals about the same files."""
    order = sorted(scores, key=lambda file: (-scores[file], paths[file]))
    strong = set(order[:_STRONGEST])
    table = PathTable((file, paths[file]) for file in order)
    resolved: dict[str, list[int]] = {}
    imports: dict[int, float] = defaultdict(float)
    imported: dict[int, float] = defaultdict(float)
    for file in order:
        wanted = details[file].imports
        for name in wanted:
            if name not in resolved:
                resolved[name] = table.module(name) or table.named(name)
        needed = {target for name in wanted for target in resolved[name]} - {file}
        share = 1 / (1 + len(wanted)) ** 0.5
        for target in sorted(needed):
            if target in strong:
                imports[file] += scores[target] * share
            if file in strong:
                imported[target] += scores[file] * share
    return {"imports": imports, "imported": imported, "beside": _beside(order, scores, paths)}


def _beside(order: Sequence[int], scores: Mapping[int, float], paths: Sequence[str]) -> dict[int, float]:
    folders: dict[str, float] = defaultdict(float)
    for file in order[:_BESIDE]:
        folders[paths[file].rpartition("/")[0]] += scores[file]
    strongest = set(order[:_BESIDE])
    return {
        file: value
        for file in order
        if (
            value := folders.get(paths[file].rpartition("/")[0], 0.0)
            - (scores[file] if file in strongest else 0)
        )
    }
