"""How many statements of reports are false, by kind. Each is derived again without the code that made it.

Asks questions about every repository below REPOS with `retinue research --json`, takes the reports apart
into claims, and checks each claim: Python with `ast` and `symtable`, the other languages by their tokens.
Questions come from `claims_questions.json`; a repository that it does not list is asked about names that it
defines.

Each sentence about code is a claim of one kind:

- `calls`, `uses`, `may`: a step names the function that does it, what it calls and where that is defined.
- `defined at`: a place that a finding shows as a definition, or as a member of a type.
- `call path`: the summary names the steps of a flow. Its function must call each of them, in order of lines.
- `terms`: a verdict says that words occur nowhere, occur together, or name a definition.
- `reads`: a constant or setting, and where it is set. `quoted`: the line of code that a finding shows.
- `shown`: the lines of code below a finding, which must be lines of the file in this order.

A kind that must never be false counts even if no report of a run has it: the table then lacks its row.

    python -m benchmarks.claims REPOS [--retinue PROGRAM] [--only NAME] [--show]

Exits with 1 if a claim is false that must not be.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import claims_python, claims_tokens
from benchmarks.claims_verdict import Verdict

QUESTIONS = Path(__file__).with_name("claims_questions.json")
NEVER_FALSE = ("calls", "defined at", "call path", "terms", "quoted", "shown")
ROLES = ("locator", "analyzer", "patterns")
SAMPLED_QUESTIONS = 12
_NAME = r"`([^`]+)`"
_PLACE = r"([^\s`:]+):(\d+)"
_DEFINED = re.compile(rf"^{_PLACE}: {_NAME}(?: is defined|, “[^”]*”)?: `")
_DEFINED_AT = re.compile(rf"{_NAME} is defined at {_PLACE}")
_CALLS = re.compile(
    rf"^{_PLACE}: {_NAME} (calls|uses|may call) {_NAME}(?: as {_NAME})?(?:, defined at | \(){_PLACE}"
)
_USES = re.compile(
    rf"^{_PLACE}: (?:{_NAME}|the file itself)(?:, an entry point,)? (uses|may use|calls|may call) {_NAME}"
    r"( as a type)?(?:: `.*)?$"
)
_DOC = r"(?:, “[^”]*”)?"
_QUOTE = r"`(.*)`"
_STEP = re.compile(
    rf"^{_PLACE}: {_NAME} (calls|uses|may call|may use) {_NAME}(?: as {_NAME})?( as a type)?"
    rf"(?: \({_PLACE}{_DOC}\))?: {_QUOTE}(?:; also on lines? ([\d, ]+).*)?$"
)
_SHOWN = re.compile(rf"^{_PLACE}: {_NAME}{_DOC}: {_QUOTE}$")
_QUOTED = re.compile(rf"^{_PLACE}\b.*?(?:: | has )`((?:(?!: `| has `).)*)`$")
_BECAUSE = re.compile(rf"(?<=`), (?:reached by|the other case of) (?={_PLACE}: `)")
_WITH_CODE = re.compile(rf"^{_PLACE}(?:: (?:has )?{_NAME}{_DOC}| in {_NAME})?$")
_TEST = re.compile(rf"^{_PLACE}: a test of {_NAME}")
_READS = re.compile(rf"^{_PLACE}: {_NAME} reads {_NAME}(?:, set at {_PLACE})?")
_HAS = re.compile(rf"^{_PLACE}: has {_NAME}")
_FLOW = re.compile(
    rf"(?:^|\. |: |Probably ){_NAME}(?: \(“[^”]*”\))?(?:, which)? calls "
    r"((?:`[^`]+`(?:, then )?)+)(?:\.|; otherwise )"
)
_WORDS = r"((?:`[^`]+`(?: and )?)+)"
_ABSENT = re.compile(rf"(?:No|Not by that name): {_WORDS} occurs? nowhere in the project's own code")
_TOGETHER = re.compile(rf"(?:Probably|Perhaps): {_WORDS} (?:occur together in|names) {_WORDS}")
SHOWN_ABOVE = 16
"""How far above the line of a finding its code may begin: with comments and decorators."""
NEAR_LINES = 100
"""How far below the name of a definition words count as being in it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a report."""

    kind: str
    text: str
    path: str
    line: int = 0
    user: str = ""
    name: str = ""
    target: tuple[str, int] | None = None
    is_call: bool = False
    words: tuple[str, ...] = ()
    defined: str = ""
    """The name at the definition, if the user imports it under another one."""


def findings_of(report: dict[str, Any]) -> list[str]:
    """Return the findings of all roles, in order."""
    found: list[str] = []
    for name in ROLES:
        role: dict[str, Any] = report.get(name) or {}
        value: dict[str, Any] = role.get("value") or {}
        found += value.get("key_findings", ())
    return found


def claims_of(report: dict[str, Any]) -> Iterator[Claim]:
    """Take a report apart: its findings, then the summaries of the report and of its roles."""
    findings = findings_of(report)
    places: dict[str, tuple[str, int]] = {}
    for text in [report.get("summary", ""), *findings]:
        for name, path, line in _DEFINED_AT.findall(text):
            places.setdefault(name, (path, int(line)))
        if match := _DEFINED.match(text) or _SHOWN.match(text):
            places.setdefault(match[3], (match[1], int(match[2])))
        if (match := _STEP.match(text)) and match[8]:
            places.setdefault(match[5], (match[8], int(match[9])))
    for name, (path, line) in places.items():
        yield Claim("defined at", f"{name} is defined at {path}:{line}", path, line, name=name)
    for text in dict.fromkeys(findings):
        yield from _claims_of_finding(text, places)
    summaries = [report.get("summary", "")]
    for name in ROLES:
        role: dict[str, Any] = report.get(name) or {}
        value: dict[str, Any] = role.get("value") or {}
        summaries.append(value.get("summary", ""))
    for text in dict.fromkeys(summaries):
        yield from _claims_of_summary(text, findings)


def _claims_of_summary(text: str, findings: Sequence[str]) -> Iterator[Claim]:
    """Take a summary apart: the steps of a flow, and what a verdict says of words."""
    if match := _FLOW.search(text):
        named = re.findall(_NAME, match[2])
        steps = [step for one in findings if (step := _STEP.match(one)) and step[3] == match[1]]
        if steps:
            yield Claim("call path", text, steps[0][1], int(steps[0][2]), match[1], words=tuple(named))
    if match := _ABSENT.search(text):
        yield Claim("terms", text, "", name="absent", words=tuple(re.findall(_NAME, match[1])))
    if match := _TOGETHER.search(text):
        for defined in re.findall(_NAME, match[2]):
            yield Claim("terms", text, "", name=defined, words=tuple(re.findall(_NAME, match[1])))


def _claims_of_finding(text: str, places: dict[str, tuple[str, int]]) -> Iterator[Claim]:
    head, _, code = text.partition("\n")
    if code and (match := _WITH_CODE.match(head)):
        yield Claim("shown", text, match[1], int(match[2]), words=tuple(code.split("\n")))
        if match[3]:
            yield Claim("defined at", head, match[1], int(match[2]), name=match[3])
        return
    if match := _STEP.match(text):
        path, line, user, verb, name, alias, as_type, there, at, code, others = match.groups()
        kind = {"calls": "calls", "uses": "uses"}.get(verb, "may")
        target = (there, int(at)) if there else places.get(name)
        yield Claim("quoted", text, path, int(line), name=code)
        for one in (line, *re.findall(r"\d+", others or "")):
            is_call = verb in ("calls", "may call") and not as_type
            yield Claim(kind, text, path, int(one), user, alias or name, target, is_call, defined=name)
    elif match := _CALLS.match(text):
        path, line, user, verb, name, alias, there, at = match.groups()
        target = there, int(at)
        yield Claim("defined at", text, there, int(at), name=name)
        kind = {"calls": "calls", "uses": "uses"}.get(verb, "may")
        yield Claim(kind, text, path, int(line), user, alias or name, target, is_call=True, defined=name)
    elif match := _USES.match(text):
        path, line, user, verb, name, as_type = match.groups()
        kind = {"calls": "calls", "uses": "uses"}.get(verb, "may")
        yield Claim(
            kind, text, path, int(line), user or "", name, places.get(name), verb == "calls" and not as_type
        )
    elif match := _TEST.match(text):
        yield Claim("uses", text, match[1], int(match[2]), name=match[3], target=places.get(match[3]))
    elif match := _READS.match(text):
        target = (match[5], int(match[6])) if match[5] else None
        yield Claim("reads", text, match[1], int(match[2]), match[3], match[4], target)
    elif match := _HAS.match(text):
        yield Claim("defined at", text, match[1], int(match[2]), name=match[3])
    else:
        for part in _BECAUSE.split(text):  # a raising line, and the condition that leads to it
            if match := _QUOTED.match(part):
                yield Claim("quoted", text, match[1], int(match[2]), name=match[3])


class Checker:
    """Checks the claims about one repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.python = claims_python.PythonTree(root)
        self.tokens = claims_tokens.TokenTree(root)

    def check(self, claim: Claim) -> Verdict:
        if claim.kind == "terms":
            return self._check_absent(claim) if claim.name == "absent" else self._check_words(claim)
        path = self.root / claim.path
        if not path.is_file():
            return Verdict("false", "no such file")
        if claim.kind == "call path":
            return self._check_steps(path, claim)
        if claim.kind == "shown":
            return _check_code(path, claim.line, claim.words)
        if claim.kind == "quoted":
            return _check_quote(path, claim.line, claim.name)
        name = re.split(r"\.|::", claim.name)[-1]
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        if not 0 < claim.line <= len(lines) or name not in lines[claim.line - 1]:
            return Verdict("false", f"line {claim.line} does not hold {name}")
        checker, tree = self._checker(path)
        if checker is None:
            return Verdict("unverifiable", f"no checker for {path.suffix}")
        if claim.kind == "defined at":
            constructor = re.match(rf"\s*{re.escape(name)}\s*\(", lines[claim.line - 1])
            if constructor and path.suffix == ".java" and "has" in claim.text:
                return Verdict("true")  # a constructor without a modifier reads like a call
            return checker.check_definition(tree, path, claim.line, name)
        target = (self.root / claim.target[0], claim.target[1]) if claim.target else None
        if claim.kind == "reads":
            return _check_reads(checker, tree, path, claim, target)
        defined = re.split(r"\.|::", claim.defined)[-1]
        return checker.check_use(
            tree, path, claim.line, claim.user, name, target, call=claim.is_call, defined=defined
        )

    def _check_steps(self, path: Path, claim: Claim) -> Verdict:
        """Check that the function of a flow calls its steps, in the order of lines."""
        checker, tree = self._checker(path)
        user = re.split(r"\.|::", claim.user)[-1]
        called = None if checker is None else checker.calls_in(tree, path, claim.line, user)
        if called is None:
            return Verdict("unverifiable", f"the body of {claim.user} is not found")
        line = 0
        for word in claim.words:
            name = re.split(r"\.|::", word)[-1]
            if not any(one == name for _, one in called):
                return Verdict("false", f"{claim.user} does not call {word}")
            later = [at for at, one in called if one == name and at >= line]
            if not later:
                return Verdict("false", "the steps are in another order")
            line = min(later)
        return Verdict("true")

    def _code_files(self) -> Iterator[tuple[str, str]]:
        """Yield the files of the project's own code: path and text."""
        for path in sorted(self.root.rglob("*")):
            shown = path.relative_to(self.root).as_posix()
            is_code = path.suffix in (".py", ".pyi") or path.suffix.lower() in claims_tokens.LANGUAGES
            if is_code and path.is_file() and not _SECONDARY.search(shown):
                yield shown, path.read_text(encoding="utf-8", errors="replace")

    def _check_absent(self, claim: Claim) -> Verdict:
        """Check that no file of the project's own code has one of the words."""
        for word in claim.words:
            pattern = _whole_word(word)
            for shown, text in self._code_files():
                if found := pattern.search(text):
                    return Verdict("false", f"{shown} has {found[0].strip()!r}")
        return Verdict("true")

    def _check_words(self, claim: Claim) -> Verdict:
        """Check that a definition has all the words, by their beginnings, in its name or below it."""
        name = re.split(r"\.|::", claim.name)[-1]
        owner = claim.name.removesuffix(name)
        is_known = False
        for shown, text in self._code_files():
            lines = text.split("\n")
            is_known = is_known or name in text
            for number in (at for at, line in enumerate(lines) if re.search(rf"\b{re.escape(name)}\b", line)):
                around = lines[max(0, number - 30) : number + NEAR_LINES] if len(claim.words) > 1 else ()
                held = re.sub(r"[_-]", "", "\n".join((shown, owner, lines[number], *around))).casefold()
                if all(_beginning(word) in held for word in claim.words):
                    return Verdict("true")
        if not is_known:
            return Verdict("unverifiable", f"no code that can be read has {name}")
        return Verdict("false", f"{claim.name} does not have {' and '.join(claim.words)}")

    def _checker(self, path: Path) -> tuple[Any, Any]:
        if path.suffix in (".py", ".pyi"):
            return claims_python, self.python
        if path.suffix.lower() in claims_tokens.LANGUAGES:
            return claims_tokens, self.tokens
        return None, None


def _check_reads(
    checker: Any, tree: Any, path: Path, claim: Claim, target: tuple[Path, int] | None
) -> Verdict:
    """Check that a name is read on a line, and that it is set where the claim says so."""
    if target is None:
        return Verdict("true")  # the line holds the name: a variable of the environment is a string
    name = claim.name.rpartition(".")[2]
    if not any(
        name in text for text in target[0].read_text(encoding="utf-8").split("\n")[target[1] - 1 : target[1]]
    ):
        return Verdict("false", f"{target[0].name}:{target[1]} does not hold {name}")
    return checker.check_definition(tree, *target, name)


def _check_quote(path: Path, line: int, code: str) -> Verdict:
    """Check that a line is quoted as it is. Long lines are cut, and secrets are redacted."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if not 0 < line <= len(lines):
        return Verdict("false", f"no line {line}")
    shown, written = " ".join(code.rstrip("….").split()), " ".join(lines[line - 1].split())
    if shown in written or "[redacted" in code:
        return Verdict("true")
    return Verdict("false", f"line {line} is {written[:80]!r}")


def _check_code(path: Path, line: int, code: Sequence[str]) -> Verdict:
    """Check that lines of code are in the file in this order, from a little above a line on."""
    written = [
        " ".join(one.split()) for one in path.read_text(encoding="utf-8", errors="replace").split("\n")
    ]
    at = max(0, line - SHOWN_ABOVE)
    for shown in (" ".join(one.rstrip("….").split()) for one in code):
        if shown and "[redacted" not in shown:
            found = next((number for number in range(at, len(written)) if shown in written[number]), None)
            if found is None:
                return Verdict("false", f"no line below {at} is {shown!r}")
            at = found
    return Verdict("true")


_SECONDARY = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|docs?|documentation|examples?|samples?|vendor|third_party|deps"
    r"|node_modules|dist|website)(?:/|$)|[._-](?:test|spec)\.|(?:^|/)test_|Tests?\.",
    re.IGNORECASE,
)
"""Paths that are tests, documentation, examples or the code of others."""


def _beginning(word: str) -> str:
    """Return the part of a word that all its forms share, without marks."""
    flat = re.sub(r"[\W_]", "", word).casefold() or word.casefold()
    return re.sub(r"(?:ations?|ings?|ied|ies|ions?|ers?|ors?|ed|es|s|e|y)$", "", flat) or flat


def _whole_word(word: str) -> re.Pattern[str]:
    """Return a pattern for a word as it is written, and for an identifier that begins with it."""
    if re.search(r"[^\w-]", word):
        letters = [re.escape(part) for part in re.split(r"[/-]", word)]
        return re.compile(rf"(?<!\w){'[/_-]?'.join(letters)}(?!\w)", re.IGNORECASE)
    return re.compile(rf"(?<![A-Za-z]){re.escape(word)}(?![a-z])", re.IGNORECASE)


def ask(retinue: Sequence[str], root: Path, question: str, data: Path) -> dict[str, Any]:
    """Return the report on a question."""
    done = subprocess.run(
        [*retinue, "research", "--json", "--no-index", "--tokens", "6000", "--root", str(root), question],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "RETINUE_DATA_DIR": str(data)},
    )
    if not done.stdout.strip():
        raise SystemExit(f"no report on {question!r}: {done.stderr}")
    return json.loads(done.stdout)


def questions_for(root: Path) -> list[str]:
    """Return the questions of a repository, or questions about names that it defines."""
    listed: dict[str, list[str]] = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    if root.name in listed:
        return listed[root.name]
    pattern = re.compile(
        r"\b(?:def|fn|func|function|class|struct|interface)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{5,40})\b"
    )
    names: Counter[str] = Counter()
    for path in sorted(root.rglob("*")):
        if path.suffix.lower() in (".py", *claims_tokens.LANGUAGES) and "test" not in path.as_posix():
            names.update(pattern.findall(path.read_text(encoding="utf-8", errors="replace")))
    chosen = random.Random(2026).sample(sorted(names), min(SAMPLED_QUESTIONS, len(names)))
    return [f"how does {name} work?" for name in chosen]


@dataclass(slots=True)
class Tally:
    """Counts verdicts by kind and language."""

    counts: Counter[tuple[str, str]]
    false: list[str]
    reports: int = 0

    def add(self, claim: Claim, verdict: Verdict, where: str) -> None:
        self.counts[claim.kind, verdict.kind] += 1
        if verdict.kind == "false":
            self.false.append(
                f"{where}: {claim.kind}: {claim.text} ({claim.path}:{claim.line}): {verdict.why}"
            )

    def table(self) -> Iterator[str]:
        yield f"{'claim':12} {'true':>6} {'false':>6} {'unverifiable':>13} {'false share':>12}"
        for kind in sorted({kind for kind, _ in self.counts}):
            true, false, open_ones = (self.counts[kind, one] for one in ("true", "false", "unverifiable"))
            share = false / max(1, true + false)
            yield f"{kind:12} {true:6} {false:6} {open_ones:13} {share:12.1%}"

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def forbidden(self) -> int:
        return sum(self.counts[kind, "false"] for kind in NEVER_FALSE)


def check_repository(retinue: Sequence[str], root: Path, data: Path, tally: Tally) -> list[dict[str, Any]]:
    """Ask all questions about a repository and count the verdicts. Return the reports."""
    checker = Checker(root)
    reports: list[dict[str, Any]] = []
    for question in questions_for(root):
        report = ask(retinue, root, question, data)
        reports.append(report)
        tally.reports += 1
        for claim in claims_of(report):
            tally.add(claim, checker.check(claim), f"{root.name}, {question!r}")
    return reports


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repos", type=Path)
    parser.add_argument("--retinue", default=f"{sys.executable} -m retinue", help="how to run Retinue")
    parser.add_argument("--only", action="append", default=[], help="a repository; repeatable")
    parser.add_argument("--show", action="store_true", help="print the false claims")
    options = parser.parse_args(arguments)
    total = Tally(Counter(), [])
    with tempfile.TemporaryDirectory() as data:
        for root in sorted(one.resolve() for one in options.repos.iterdir() if one.is_dir()):
            if options.only and root.name not in options.only:
                continue
            before = total.total, total.forbidden
            check_repository(options.retinue.split(), root, Path(data), total)
            print(
                f"{root.name}: {total.total - before[0]} claims, {total.forbidden - before[1]} false",
                flush=True,
            )
    print(*total.table(), sep="\n")
    print(f"{total.total} claims of {total.reports} reports; {total.forbidden} false that must not be")
    if options.show:
        print(*total.false, sep="\n")
    return 1 if total.forbidden else 0


if __name__ == "__main__":
    sys.exit(main())
