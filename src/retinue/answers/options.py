"""Finds the options that a question asks for, and tells name, type, default, uses and setters of each.

The words of the question must be in the name of the option; its help text decides between several.
`option_shapes` knows what an option looks like in code, and `option_uses` where it is read and set.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from retinue.answers.flow import tell_flow
from retinue.answers.option_shapes import (
    ATTRIBUTE,
    CLASS_DEFAULT,
    DEFAULT,
    DESCRIBED,
    FLAG_LINE,
    HELD,
    HOLDER,
    HOLDING,
    NOT_SEARCHED,
    OWN_FIELD,
    QUOTED,
    SETTING_CLASS,
    TYPE,
    TYPE_ALIAS,
    WORTH,
    Option,
    parse_option,
)
from retinue.answers.option_uses import default_at_reads, find_reads, flag_set_by
from retinue.answers.question import code_names, heaviest_terms
from retinue.answers.role_context import Finding, RoleContext, soft_deadline, verify_findings
from retinue.answers.source_files import SourceDefinition, SourceFile
from retinue.codebase import (
    Bounds,
    Claim,
    FileEntry,
    LineMatch,
    ParsedQuestion,
    Place,
    SearchPattern,
    file_category,
    split_identifier,
    stem,
)
from retinue.core import UNMETERED, RoleResult, Spending, Stop, clip, counted, join_notes

MAX_OPTIONS = 3
MAX_ALSO = 2
"""How many other places that define the best option are shown."""
MAX_READS, MAX_FURTHER_READS = 4, 2
"""How many places that read an option are shown: for the best one, and for each of the others."""
CANDIDATES = 24
"""How many candidates are compared by their help text."""
MIN_SHARE_OF_BEST = 0.75
"""An option with a lower share of the best score is left out."""
HELP_WEIGHT = 0.4
"""The weight of a word in the help text of an option; a word in its name has 1."""
FILLED_HELP_WEIGHT = 0.8
"""The same if the question asks how often or how many, and the option is called an interval or a limit."""
PLACE_WEIGHT = 1.0
"""How much more an option in the best file counts."""
NEAR_SHARE = 0.5
"""A file with this share of the best score may hold options even if nothing in it is named like options."""
HELP_LINES = 6
"""How many lines around an option belong to its help text."""
ATTRIBUTE_LINES = 12
"""How many lines an attribute above an option has at most."""
NAME_BOUNDS = Bounds(max_files=600, max_matches=5_000, max_matches_per_file=80, max_line_chars=300)
DESCRIBED_BOUNDS = Bounds(max_files=60, max_matches=120, max_matches_per_file=10, max_line_chars=300)
MAX_DESCRIBED_TERMS = 6
ABBREVIATIONS = {
    "maximum": "max",
    "maximal": "max",
    "minimum": "min",
    "number": "num",
    "directory": "dir",
    "folder": "dir",
    "length": "len",
    "argument": "arg",
    "message": "msg",
    "connection": "conn",
    "temporary": "tmp",
    "password": "pass",
    "colour": "color",
    "colours": "color",
}

OPTION_TERMS = frozenset(
    stem(word)
    for word in (
        *("option", "setting", "configure", "configuration", "flag", "default", "parameter", "switch"),
        *("variable", "environment", "value", "control", "set", "change", "argument", "whether", "enable"),
    )
)
"""Words that ask for an option but are in the names of few."""

CODE_WORDS = frozenset(("null", "html", "http", "https", "class", "import", "static", "private", "public"))
"""Words that are too common to be searched for elsewhere, but tell in the name of an option."""

_MEASURED = re.compile(
    r"\bhow (?:often|long|many|much|large|big|deep|wide|far|fast|soon|high)\b"
    r"|\b(?:limits?|caps?|number|maximum|minimum)\b",
    re.IGNORECASE,
)
_MEASURES = frozenset(
    stem(word)
    for word in (
        *("interval", "frequency", "period", "rate", "fps", "every", "delay", "timeout", "duration", "ttl"),
        *("age", "count", "limit", "max", "min", "num", "number", "size", "length", "bytes", "percent"),
        *("width", "depth", "columns", "level", "capacity", "threshold", "expire", "backoff", "retries"),
        *("workers", "threads"),
    )
)
"""Words in the names of options that are a number, a size or a time."""
_MEASURE_TYPE = re.compile(
    r"(?:u?int|long|short|float|double|number|size|duration|time|usize|u\d|i\d|f\d)", re.IGNORECASE
)
_ERROR_TYPE = re.compile(r"(?:Error|Exception)$")
"""The name of a type whose fields say what went wrong, and configure nothing."""
MEASURE_WEIGHT = 0.8
"""The weight of a related word that is a measure: "how often" means an interval or a rate."""
UNMEASURED_FACTOR = 0.6
"""For an option that is no measure, if the question asks how often, how long or how many."""
SAID_FACTOR = 1.5
"""For an option whose name has three or more words, all of them from the question."""
MIN_COVERED = 2
"""How many words of the question an option needs to be certain, unless the question has only one."""


@dataclass(slots=True)
class _Wanted:
    """The words that an option's name should have."""

    forms: dict[str, tuple[str, ...]]
    """For each term of the question, the beginnings of words that mean it."""
    exact: frozenset[str]
    """Names that the question gives, in lower case without punctuation."""
    related: Mapping[str, float] = field(default_factory=dict[str, float])
    """The weights of terms that the question does not have itself."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each related term, the term of the question that it comes from."""
    seen: Counter[str] = field(default_factory=Counter[str])
    """How many candidates have each term."""
    is_measured: bool = False
    """Whether the question asks for a number, a size or a time."""
    said: frozenset[str] = frozenset()
    """The stems of all words of the question, also of those that are too common to be searched for."""

    @property
    def enough(self) -> int:
        """How many words an option needs to be certain."""
        return min(MIN_COVERED, len(self.forms) - len(self.related))

    def fills(self, option: Option) -> bool:
        """Return whether an option has the name that the caller guessed or the measure that is asked for."""
        flat = re.sub(r"\W|_", "", option.name).lower()
        return flat in self.exact or any(term in _MEASURES for term in self.terms_in(option.name))

    def own_terms_in(self, text: str) -> set[str]:
        return {term for term in self.terms_in(text) if term not in self.related}

    def terms_in(self, text: str) -> list[str]:
        words = [stem(word) for word in split_identifier(text)]
        return [term for term, forms in self.forms.items() if any(_fits(form, words) for form in forms)]

    def meant_in(self, text: str) -> list[str]:
        """Return the terms in a text, without those that only repeat another: `timestamp` beside `date`."""
        found = self.terms_in(text)
        return [term for term in found if self.sources.get(term) not in found]

    def weight(self, term: str, candidates: int) -> float:
        return self.related.get(term, 1.0) * math.log(1 + candidates / (1 + self.seen[term]))


def _fits(form: str, words: Sequence[str]) -> bool:
    return any(word == form or (len(word) > 2 and len(form) > 3 and word.startswith(form)) for word in words)


def find_options(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[Option]:
    """Return the options whose names have the words of the question, best first.

    An option in one of the best files counts more, and the same for one near a definition that answers. The
    options are searched for once per request.
    """
    known = context.results.get(find_options.__name__)
    if known is None:
        known = context.results[find_options.__name__] = _search_options(context, places, stop)
    return [one for one in known if isinstance(one, Option)]


def _wanted_words(question: ParsedQuestion) -> _Wanted | None:
    """Return the words that the names of the options should have; None if the question has none."""
    said = [stem(word) for word in re.findall(r"[a-z]+", question.text.partition("\n")[0].lower())]
    searched = dict.fromkeys((*heaviest_terms(question), *(word for word in said if word in CODE_WORDS)))
    terms = [term for term in searched if term not in OPTION_TERMS]
    if not terms and not question.related:
        return None
    forms: dict[str, tuple[str, ...]] = {}
    for term in terms:
        word = question.word_by_term.get(term, term).lower()
        short = ABBREVIATIONS.get(word) or ABBREVIATIONS.get(word.rstrip("s"))
        forms[term] = (term, *((short,) if short else ()))
    for term in question.related:
        forms.setdefault(term, (term,))
    named = frozenset(re.sub(r"\W|_", "", name).lower() for name in code_names(question))
    exact = named | {hint.flat for hint in question.hints}
    related = {
        term: MEASURE_WEIGHT if term in _MEASURES else min(1.0, weight)
        for term, weight in question.related.items()
    }
    sources = {term: one.source for term, one in question.related_to.items()}
    is_measured = _MEASURED.search(question.text) is not None
    return _Wanted(forms, exact, related, sources, is_measured=is_measured, said=frozenset(said))


def _search_options(context: RoleContext, places: Sequence[Place], stop: Stop) -> list[Option]:
    wanted = _wanted_words(context.question)
    if wanted is None:
        return []
    candidates = [*_candidates(context, wanted, stop), *_described_candidates(context, wanted, stop)]
    for one in candidates:
        wanted.seen.update(set(wanted.terms_in(one.name)))
    top = max((place.score for place in places), default=0.0) or 1.0
    near = {place.entry: max(0.0, place.score / top) for place in places}
    scored = [_score_name(one, wanted, len(candidates), near.get(one.entry, 0.0)) for one in candidates]
    best = sorted(scored, key=lambda one: -one.score)[:CANDIDATES]
    read = [_read_option(context, one, wanted, len(candidates), near, stop) for one in best]
    kept = sorted((one for one in read if one is not None), key=lambda one: -one.score)
    return _distinct_options(kept, wanted)


def _distinct_options(found: Sequence[Option], wanted: _Wanted) -> list[Option]:
    """Return the best options, one of each name; the others of a name are in its `also`."""
    same_named: dict[str, list[Option]] = {}
    for one in found:
        same_named.setdefault(re.sub(r"\W|_", "", one.name).lower(), []).append(one)
    for group in same_named.values():  # where an option is declared comes before where it is kept
        best = group[0].score
        group.sort(key=lambda one: one.shape == "variable")
        group[0] = replace(group[0], score=best)
    ordered = [
        replace(
            first,
            is_certain=first.covered >= wanted.enough
            and (not wanted.is_measured or _is_measure(first) or wanted.fills(first)),
            also=tuple({one.entry: one for one in reversed(others) if one.entry != first.entry}.values())[
                ::-1
            ],
        )
        for first, *others in same_named.values()
    ]
    return [
        one
        for one in ordered
        if one.score >= MIN_SHARE_OF_BEST * ordered[0].score and one.covered >= ordered[0].covered
    ][:MAX_OPTIONS]


def _candidates(context: RoleContext, wanted: _Wanted, stop: Stop) -> Iterator[Option]:
    """Yield the lines that look like an option and have a word of the question in its name."""
    words = "|".join(dict.fromkeys(re.escape(form) for forms in wanted.forms.values() for form in forms))
    name = rf"[\w.-]*(?:{words})[\w.-]*"
    pattern = rf"{QUOTED}{name}{QUOTED}|\b{name}\??\s*(?:[:=(;]|$)|^\s*(?:#\s*define\s+|set :)?{name},?\s+\S+"
    matches = context.scope.codebase.grep(
        SearchPattern(pattern, ignore_case=True), stop, globs=NOT_SEARCHED, bounds=NAME_BOUNDS
    ).matches
    stop.check()
    for match in matches:
        if file_category(match.entry.path) not in ("own", "package"):
            continue
        option = parse_option(match.entry, match.line, match.text)
        if option is not None and wanted.terms_in(option.name):
            yield option


def _described_candidates(context: RoleContext, wanted: _Wanted, stop: Stop) -> Iterator[Option]:
    """Yield options whose comment has two words of the question, or whose help text has one."""
    terms = [forms[0] for forms in wanted.forms.values()][:MAX_DESCRIBED_TERMS]
    own = [term for term in terms if term not in wanted.related]
    patterns = [
        rf"{re.escape(one)}.{{0,60}}{re.escape(other)}" for one in terms for other in terms if one != other
    ]
    patterns += [rf"\b(?:help|desc|description|about|usage)\b.*\b{re.escape(term)}" for term in own]
    if not patterns:
        return
    matches = context.scope.codebase.grep(
        SearchPattern("|".join(patterns), ignore_case=True), stop, globs=NOT_SEARCHED, bounds=DESCRIBED_BOUNDS
    ).matches
    stop.check()
    for match in matches:
        if file_category(match.entry.path) not in ("own", "package"):
            continue
        source = context.sources.peek(match.entry, stop)
        if source is None or match.line > len(source.lines):
            continue
        is_comment = match.line in source.prose_lines
        steps = range(1, HELP_LINES + 1) if is_comment else range(0, -HELP_LINES - 3, -1)
        for step in steps:
            number = match.line + step
            if not 1 <= number <= len(source.lines) or (is_comment and number in source.prose_lines):
                continue
            option = parse_option(match.entry, number, source.lines[number - 1])
            is_described = option is not None and (is_comment or option.shape in DESCRIBED)
            if option is not None and is_described:
                yield option
            if is_described or is_comment:
                break
        else:
            if (option := _option_below(source, match.line)) is not None:
                yield option


def _option_below(source: SourceFile, line: int) -> Option | None:
    """Return the option below an attribute that a line is in: `#[arg(help = "...")]` over a field."""
    for number in range(line + 1, min(line + HELP_LINES, len(source.lines)) + 1):
        option = parse_option(source.entry, number, source.lines[number - 1])
        if option is not None and option.shape == "field" and _attribute_above(source, number) <= line:
            return option
    return None


def _attribute_above(source: SourceFile, line: int) -> int:
    """Return the first line of the attributes directly above a line; the line itself if there are none."""
    first = line
    while first > 1 and source.lines[first - 2].rstrip().endswith((")", "]")):
        above = range(first - 1, max(0, first - ATTRIBUTE_LINES), -1)
        start = next((number for number in above if ATTRIBUTE.match(source.lines[number - 1])), None)
        if start is None:
            break
        first = start
    return first


def _score_name(option: Option, wanted: _Wanted, candidates: int, near: float) -> Option:
    """Score an option by its name. `near` is the score of its file for the question, from 0 to 1."""
    found = wanted.meant_in(option.name)
    words = [word for word in split_identifier(option.name) if word not in ("set", "with", "without", "no")]
    share = len(found) / max(1, len(words))
    score = sum(wanted.weight(term, candidates) for term in found) * min(1.0, share) * len(found) ** 0.5
    if re.sub(r"\W|_", "", option.name).lower() in wanted.exact:
        score *= 4
    if len(words) > 2 and wanted.said.issuperset(map(stem, words)):
        score *= SAID_FACTOR
    in_options_file = HOLDER.search(PurePosixPath(option.entry.path).stem) is not None
    if wanted.is_measured and option.type and not _is_measure(option):
        score *= UNMEASURED_FACTOR
    score *= WORTH.get(option.shape, 1.0) * (1.15 if in_options_file else 1.0) * (1 + PLACE_WEIGHT * near)
    return replace(option, score=score)


def _is_measure(option: Option) -> bool:
    """Return whether an option is a number, a size or a time, by the words of its name or by its type."""
    is_named = any(stem(word) in _MEASURES for word in split_identifier(option.name))
    return is_named or _MEASURE_TYPE.match(option.type.lstrip("*")) is not None


def _read_option(
    context: RoleContext,
    option: Option,
    wanted: _Wanted,
    candidates: int,
    near: Mapping[FileEntry, float],
    stop: Stop,
) -> Option | None:
    """Add what the file says about an option: its holder, type, default and help text."""
    source = context.sources.peek(option.entry, stop)
    if source is None or option.line > len(source.lines) or option.line in source.prose_lines:
        return None
    within = _definition_holding(source, option)
    holder = within.qualified_name if within else ""
    if option.shape in HELD:
        if _ERROR_TYPE.search(holder):
            return None
        in_type = within is not None and (
            source.is_type(within) or TYPE_ALIAS.search(source.lines[within.line - 1]) is not None
        )
        is_own = OWN_FIELD.match(source.lines[option.line - 1]) is not None
        is_parameter = within is not None and _is_in_signature(source, within, option.line)
        is_near = near.get(option.entry, 0.0) >= NEAR_SHARE and (in_type or is_own or is_parameter)
        if not is_near and not HOLDER.search(f"{holder} {PurePosixPath(option.entry.path).stem}"):
            return None
        if within is not None and not in_type and not is_own:
            if option.shape != "field" or not _is_in_signature(source, within, option.line):
                return None  # a local variable
            option = replace(option, shape="parameter", score=option.score * WORTH["parameter"])
    text = _help_text(source, option.line)
    if option.shape == SETTING_CLASS:
        text = "\n".join(source.lines[within.line - 1 : within.end]) if within is not None else ""
        if (declared := CLASS_DEFAULT.search(text)) is None:
            return None
        option = replace(option, default=clip(declared["value"], 60))
    of = holder if option.shape in HOLDING else ""
    said = {
        *wanted.terms_in(" ".join(re.findall(r"\w+", text))),
        *wanted.terms_in(of.replace(".", "_")),
    }.difference(wanted.terms_in(option.name))
    fills = wanted.fills(option)
    weight = FILLED_HELP_WEIGHT if wanted.is_measured and fills else HELP_WEIGHT
    help_score = weight * sum(wanted.weight(term, candidates) for term in said)
    score = option.score + help_score * (1 + PLACE_WEIGHT * near.get(option.entry, 0.0))
    covered = len(wanted.own_terms_in(option.name) | {term for term in said if term not in wanted.related})
    score *= 1 + covered / max(1, len(wanted.forms) - len(wanted.related))
    default, kind = option.default, option.type
    stated = sorted(DEFAULT.finditer(text), key=lambda found: found["prose"] is not None)
    if not default and (found := next(iter(stated), None)):  # what the code says comes before prose
        default = _without_closing(next(filter(None, found.groups())).strip())
    if not kind and (found := TYPE.search(text)):
        kind = next(filter(None, found.groups())).strip("\"'")
    return replace(option, score=score, default=default, type=kind, holder=holder, covered=covered + fills)


_OPENING = {")": "(", "]": "[", "}": "{"}


def _without_closing(value: str) -> str:
    """Return a value without brackets that close what is around it: `off)` in `(default is off)`."""
    while (opening := _OPENING.get(value[-1:])) and value.count(value[-1]) > value.count(opening):
        value = value[:-1]
    return value


def _is_in_signature(source: SourceFile, function: SourceDefinition, line: int) -> bool:
    """Return whether a line is one of the lines of a function's parameters."""
    if source.is_type(function) or not function.line < line <= function.end:
        return False
    above = "\n".join(source.lines[function.line - 1 : line - 1])
    return above.count("(") > above.count(")")


def _definition_holding(source: SourceFile, option: Option) -> SourceDefinition | None:
    """Return the definition around an option that is not the option itself."""
    around = [one for one in source.definitions if one.line < option.line <= one.end]
    return max(around, key=lambda one: one.line, default=None)


def _help_text(source: SourceFile, line: int) -> str:
    """Return the comment above an option and the lines of its statement."""
    first = _attribute_above(source, line)
    top = first
    while first > 1 and top - first < HELP_LINES and (first - 1) in source.prose_lines:
        first -= 1
    last = line
    opened = source.lines[line - 1].count("(") - source.lines[line - 1].count(")")
    is_flag = FLAG_LINE.match(source.lines[line - 1]) is not None
    while last < len(source.lines) and last - line < HELP_LINES and (opened > 0 or is_flag):
        last += 1
        opened += source.lines[last - 1].count("(") - source.lines[last - 1].count(")")
        if opened < 0:
            break
    return "\n".join(source.lines[first - 1 : last])


def explain_options(
    context: RoleContext, places: Sequence[Place], stop: Stop, spending: Spending = UNMETERED
) -> RoleResult:
    """Tell which options configure the subject: name, type, default, where each is set and read."""
    context = context.with_spending(spending)
    findings: list[Finding] = []
    names: list[str] = []
    is_certain = False
    with soft_deadline(stop) as soft:
        for option in find_options(context, places, soft.stop):
            is_certain |= not names and option.is_certain
            source = context.sources.peek(option.entry, soft.stop)
            if source is None:
                continue
            reads = find_reads(context, option, soft.stop)
            default = option.default or default_at_reads(option, reads)
            findings.append(_definition_finding(context, option, source, default))
            for other in option.also[: MAX_ALSO if not names else 0]:
                there = context.sources.peek(other.entry, soft.stop)
                if there is not None:
                    findings.append(_definition_finding(context, other, there, other.default, is_first=False))
            names.append(option.name)
            most = MAX_READS if len(names) == 1 else MAX_FURTHER_READS
            findings += [_read_finding(context, option, read, match) for read, match in reads[:most]]
            if (flag := flag_set_by(source, option, reads)) is not None:
                used = find_reads(context, flag, soft.stop)[:MAX_FURTHER_READS]
                findings += [_read_finding(context, flag, read, match) for read, match in used]
    if not names:
        flow = tell_flow(context, places, stop, spending)
        return replace(flow, summary=f"No option is named with the words of the question. {flow.summary}")
    verified = verify_findings(context, findings, stop)
    if is_certain:
        summary = f"{counted(len(names), 'option')}: {', '.join(f'`{name}`' for name in names)}."
    else:
        nearest = ", ".join(f"`{name}`" for name in names)
        summary = f"No option is certainly meant. The nearest by its words: {nearest}."
    return RoleResult(
        summary=summary,
        references=verified.references,
        key_findings=verified.texts,
        confidence="med" if is_certain else "low",
        notes=join_notes(verified.note, soft.note),
    )


def _definition_finding(
    context: RoleContext, option: Option, source: SourceFile, default: str, *, is_first: bool = True
) -> Finding:
    facts = [
        *([f"type {_plain(option.type)}"] if option.type else []),
        *([f"default {_plain(default)}"] if default else []),
    ]
    shown = f" ({', '.join(facts)})" if facts else ""
    of = f" of `{option.holder}`" if option.holder and option.shape in HOLDING else ""
    reference = context.reference(option.entry, option.line)
    kind = f"{'' if is_first else 'also '}a {option.shape}"
    text = f"{reference}: `{option.name}`{shown}, {kind}{of}: `{source.quote(option.line)}`"
    text = text.replace("a environment variable", "an environment variable", 1)
    return Finding(text, (Claim(option.entry, option.line, (option.name,)),))


def _plain(value: str) -> str:
    return clip(" ".join(value.strip().rstrip(",;").split()).replace("`", ""), 50)


def _read_finding(context: RoleContext, option: Option, source: SourceFile, match: LineMatch) -> Finding:
    within = source.definition_around(match.line)
    by = f" in `{within.qualified_name}`" if within else ""
    reference = context.reference(match.entry, match.line)
    line = source.lines[match.line - 1].strip()
    is_setter = within is not None and within.line == match.line
    done = f"set by `{within.qualified_name}`" if within and is_setter else f"used{by}"
    text = f"{reference}: `{option.name.lstrip('-')}` is {done}: `{source.quote(match.line)}`"
    return Finding(text, (Claim(match.entry, match.line, (line,)),))
