"""What is known of a root's files for one question, whether an index or a scan found it.

The two sources must agree to the last number: the ranker cannot tell them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from retinue.codebase.entry import FileEntry
from retinue.codebase.path_words import PathWords


@dataclass(frozen=True, slots=True)
class Detail:
    """One file seen closely, its chunks as columns: a question asks for few fields of few of them."""

    starts: Sequence[int]
    """The byte each chunk begins at; at the end, the one after the last."""
    lines: Sequence[int]
    """The line that names each chunk."""
    names: Sequence[str]
    imports: Sequence[str]
    hits: dict[str, dict[int, int]]
    """Term to chunk to how often."""
    name_terms: Mapping[str, str]
    """Each defined name to its terms, every one once, spaces between."""


@dataclass(frozen=True, slots=True)
class RelatedCommit:
    """A commit that speaks of the question."""

    terms: frozenset[str]
    words: int
    """Distinct terms of its message: a long one matches by chance."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """The commits nearest to the question, best first, and how common its terms are among all."""

    commits: int = 0
    frequency: dict[str, int] = field(default_factory=dict[str, int])
    changes: Sequence[RelatedCommit] = ()


class Evidence(Protocol):
    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that may be named, in the order of the roots, then by path. Its place is its number."""
        ...

    def entry(self, file: int) -> FileEntry: ...

    @property
    def sizes(self) -> Sequence[int]:
        """Bytes on disk, one for each path."""
        ...

    @property
    def counts(self) -> dict[str, dict[int, int]]:
        """Term to file to how often."""
        ...

    def path_words(self) -> PathWords:
        """The same terms in the paths."""
        ...

    def details(self, files: Sequence[int], terms: Collection[str]) -> dict[int, Detail]:
        """Some files seen closely, with where these of the terms stand; others may be there too."""
        ...


def together(pasts: Sequence[Past]) -> Past:
    """The histories of several roots as one."""
    if len(pasts) == 1:
        return pasts[0]
    frequency: Counter[str] = Counter()
    for past in pasts:
        frequency.update(past.frequency)
    changes = [change for past in pasts for change in past.changes]
    return Past(sum(past.commits for past in pasts), dict(frequency), changes)
