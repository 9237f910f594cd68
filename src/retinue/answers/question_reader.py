"""Reads a question, once: what it asks for, and which words, names and messages it is about.

Whatever answers a question takes the `Question` that this module returns. The phrases are in
`question_wording`. Knows nothing of files: only the code shows whether it has a name or prints a text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from retinue.answers.question_wording import WORDINGS
from retinue.codebase import FileKind, ParsedQuestion, parse_hints, parse_question, stem
from retinue.core import Intent, InvalidInput

MAX_QUESTION_CHARS = 100_000
"""Enough for a bug report with its log, but not for a pasted file."""
MAX_TERMS = 40
"""How many of the heaviest terms of a long question are used."""
MAX_KEYWORDS = 8
MAX_TITLE_CHARS = 2_000
"""How much of the first line of a question tells what it asks for."""
ROLE_INTENTS: Mapping[str, tuple[Intent, ...]] = {
    "locator": ("where", "error", "options", "exists"),
    "analyzer": ("how", "callers", "options", "error", "changes"),
    "patterns": ("examples",),
}
"""The intents that a request for a single role may have. Any other question gets the first one."""

_PROJECT_INTENTS = ("where", "callers", "examples", "changes", "options", "error", "exists")
_CODE_INTENTS = ("where", "how", "callers", "error")
_GUESSED_INTENTS = ("how", "where", "options", "examples")
_TEST_STEMS = ("test", "spec", "fixtur", "mock")

_IDENTIFIER = re.compile(r"_|\d|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""Matches words that can only be names of code."""
_JOINED = re.compile(r"\b[A-Za-z]\w{0,60}_\w{1,60}\b")
"""Matches names with an underscore in any casing, such as `Curl_http_follow`."""
_MARKED = re.compile(r"(?<![\w/.+-])(?:[A-Za-z]{2,12}[/-]\d{1,2}|[A-Za-z](?:\+\+|#))(?![\w/+-])")
"""Matches names with a mark: `HTTP/3`, `UTF-8`, `C++`."""
_QUOTED_NAME = re.compile(r"[`'\"]([\w./+#-]{2,60})[`'\"]")
_PROPER = re.compile(r"(?<=\w\s)[A-Z]\w{1,40}\b|\b\w{0,30}?[a-z]\w{0,30}?[A-Z]\w{0,40}\b")
"""Matches names of things inside a sentence: `YAML`, `GraphQL`."""

_GENERIC_WORDS = """
implement implementation define definition declare handle locate live call called function method class module
package logic part support contain place exist example pattern similar usage show change configure option
setting everything anything stuff program app application system protection handling feature possibility
ability way possible available recently lately recent latest explain describe give list find
"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split()))
"""Stems of words that ask for something without saying what."""
_EVERYTHING_WORDS = """
change everything anything stuff program app application system feature recently lately recent latest
"""
_EVERYTHING = frozenset(map(stem, _EVERYTHING_WORDS.split()))
"""Those of them that mean the whole project if a question asks what changed."""
_SYMPTOMS = frozenset(map(stem, ["missing", "unused", "stop", "answer", "people", "tell", "keep"]))
"""Stems of words that say what happens, but not to what."""

_ADDED = re.compile(r"\b(?:add|introduc|creat|remov|delet|deprecat|first)", re.IGNORECASE)
_ERROR_WORD = re.compile(
    r"\b(?:errors?|exceptions?|warnings?|messages?|rais\w+|throws?|thrown|fail\w*|panics?|crash\w*|complains?|says?"
    r"|prints?|printed|log(?:s|ged)|come from|text|mean|why)\b",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"^[^\n?`\"']{0,60}?(?:(?i:error|exception|warning|panic|\bfatal|\bfailed|\bfailure)"
    r"|\b(?:[a-z_]\w*\.)+[A-Z]\w*)(?:\[\w+\])?\s?: +(?P<text>\S.*)$",
    re.MULTILINE,
)
"""A pasted line that says of itself that it is an error: `Uncaught TypeError: x is not a function`."""
_BEHIND = re.compile(
    r"^(?P<said>.+?)(?:[.!,;:…\n]|\s[-–—]|(?<=[\"'`”)]))\s*"
    r"(?P<question>\b(?:so |and )?(?:where|why|what|how|which|who|when)\b[^\n?]{0,300}\?)\W{0,9}$",
    re.IGNORECASE | re.DOTALL,
)
"""A text with a question behind it: `could not open option file. Where does this come from?`"""
_ASKS = re.compile(r"\W*(?:where|why|what|how|which|who|when)\b", re.IGNORECASE)
_AHEAD = re.compile(
    r"^(?P<question>\W*(?:where|why|what|how|which|when)\b[^\n:?]*?\b(?:error|message|warning|from|get|see|mean\w*"
    r"|says?|prints?|raise[sd]?|throws?|complains?))[:?]\s+(?P<said>\S[^\n]*?)\??$",
    re.IGNORECASE,
)
"""A question with the message behind it: `Why does it say: could not open option file`"""
_QUOTED_TEXT = re.compile(
    r"\"([^\"\n]{6,300})\"|“([^”\n]{6,300})”|`([^`\n]{6,300})`|(?<!\w)'((?:[^'\n]|'(?=\w)){6,300})'(?!\w)"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MIN_MESSAGE_WORDS = 3

_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|large|big|old|far|deep|wide|fast)\b|\b(?:number|size|limit|timeout) ",
    re.IGNORECASE,
)
_ASKS_TO_LOOK = re.compile(
    r"\W*(?:please\s+)?(?:analy[sz]e|assess|audit|check|compare|count|determine|examine|identify|inspect|investigate|"
    r"locate|look|name|research|review|search|summari[sz]e|tell|validate|verify)\b",
    re.I,
)
_WEB_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}]")

_KINDS: Mapping[FileKind, str] = {
    "test": r"tests?|specs?|test cases?|unit tests?",
    "docs": r"docs?|documentation|readmes?|guides?",
    "config": r"config\w*|settings?",
    "types": r"types?|interfaces?|schemas?",
    "entry point": r"entry points?|command line",
    "implementation": r"implementations?|sources?|production code",
}
_ONLY = re.compile(r"\b(?:only|just|solely|nothing but)\b", re.IGNORECASE)
_NOT = r"\b(?:not|no|without|except|excluding|ignor\w+|leave out|skip)\s+(?:for\s+|in\s+)?(?:the\s+|any\s+)?"
_AREA = re.compile(
    r"\b(?:in|inside|within|under|below)\s+(?:the\s+)?[`'\"]?([A-Za-z_][\w./-]*[\w/])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The part of a follow-up that says where to look."""

    wanted: frozenset[FileKind] = frozenset()
    unwanted: frozenset[FileKind] = frozenset()
    areas: tuple[str, ...] = ()
    """Names of folders or files."""
    only: bool = False
    """Whether only the wanted kinds are meant: it says so, or says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as it was understood."""

    text: str
    """As the caller wrote it."""
    intent: Intent = "how"
    parsed: ParsedQuestion
    """What the ranker searches for."""
    messages: tuple[str, ...] = ()
    """Error messages that it quotes or pastes, most telling first."""
    possible_message: str = ""
    """A text that is an error message if the code prints it."""
    narrowing: Narrowing | None = None
    """Where a follow-up says to look; None for a first question."""

    @property
    def names(self) -> tuple[str, ...]:
        """Words that can only be names of code. If the code has none of them, there is no answer."""
        text = self.parsed.text
        return tuple(
            name
            for name in self.parsed.names
            if _IDENTIFIER.search(name) or f"`{name}`" in text or f"{name}(" in text
        )[:MAX_TERMS]

    @property
    def proper_names(self) -> tuple[str, ...]:
        """Names of code or of things outside of it, as written: never plain words in lower case."""
        title = self.text.partition("\n")[0][:MAX_TITLE_CHARS]
        patterns = (_QUOTED_NAME, _MARKED, _PROPER)
        found = dict.fromkeys((*self.names, *(name for one in patterns for name in one.findall(title))))
        whole = " ".join(found)
        return tuple(name for name in found if len(name) > 1 and whole.count(name) == 1)

    @property
    def definition_names(self) -> tuple[str, ...]:
        """Names that a definition may have: those of code, or a capitalised word that is all one asks for."""
        capitalised = (name for name in self.parsed.names if name[0].isupper())
        return self.names or (tuple(capitalised) if len(self.subject_terms) == 1 else ())

    @property
    def terms(self) -> dict[str, float]:
        """The stems that weigh most, in the order of the question."""
        weights = self.parsed.terms
        heaviest = set(sorted(weights, key=lambda term: -weights[term])[:MAX_TERMS])
        return {term: weight for term, weight in weights.items() if term in heaviest}

    @property
    def subject_terms(self) -> tuple[str, ...]:
        """The heaviest terms that say what the question is about."""
        return tuple(term for term in self.terms if term not in _GENERIC | _SYMPTOMS)

    @property
    def required_words(self) -> tuple[str, ...]:
        """Words of which an answer must contain at least one."""
        return self.names or self.subject_terms or (*self.terms, *self.parsed.related)

    @property
    def supporting_words(self) -> tuple[str, ...]:
        """Words that can lead to an answer: the required ones, related ones, and those of hints."""
        related = () if self.names else tuple(self.parsed.related)
        hinted = (term for hint in self.parsed.hints for term in (hint.flat, *hint.terms))
        return tuple(dict.fromkeys((*self.required_words, *related, *hinted)))

    @property
    def keywords(self) -> tuple[str, ...]:
        """The words that are searched for, heaviest first, for the report."""
        if self.names_nothing:
            return ()
        names = sorted(self.parsed.names, key=lambda name: (-self.parsed.names[name], name))
        shown = (self.word(term) for term in (*names, *self.required_words))
        return tuple(dict.fromkeys(shown))[:MAX_KEYWORDS]

    @property
    def names_nothing(self) -> bool:
        """Whether no word says what the question is about: "how does it work?", "x"."""
        parsed = self.parsed
        if self.names or self.proper_names or parsed.paths or parsed.dotted or parsed.frames or parsed.hints:
            return False
        if len(parsed.kept_stop_terms - _GENERIC) > 1:  # "some lines of a file"
            return False
        return parsed.terms.keys() <= _GENERIC | parsed.kept_stop_terms

    @property
    def is_about_everything(self) -> bool:
        """Whether a question for changes names no part of the project: "what changed in the app?"."""
        return self.names_nothing and self.parsed.terms.keys() <= _EVERYTHING | self.parsed.kept_stop_terms

    @property
    def asks_when_added(self) -> bool:
        """Whether a question for changes asks for the commit that added or removed something."""
        return _ADDED.search(self.text) is not None

    @property
    def is_about_tests(self) -> bool:
        """Whether tests may answer it. For any other question they only repeat what they test."""
        is_wanted = self.narrowing is not None and "test" in self.narrowing.wanted
        return is_wanted or self.parsed.asks_for(*_TEST_STEMS)

    @property
    def needs_project(self) -> bool:
        """Whether only a project answers it. A question for how or what may also be about the world."""
        return self.parsed.is_question and self.intent in _PROJECT_INTENTS

    @property
    def prefers_code(self) -> bool:
        """Whether code answers it better than the documentation."""
        return self.intent in _CODE_INTENTS

    @property
    def is_answered_by_guess(self) -> bool:
        """Whether its places are guesses if it has words that the code lacks."""
        return self.intent in _GUESSED_INTENTS

    def word(self, term: str) -> str:
        """Return the word of the question that a term comes from."""
        return self.parsed.word_by_term.get(term, term)

    def with_hints(self, also: Iterable[str]) -> Question:
        """Return the question with other hints of the caller."""
        return replace(self, parsed=replace(self.parsed, hints=parse_hints(also)))

    def as_message(self) -> Question:
        """Return the question as one for the error message that it turned out to be."""
        return replace(self, intent="error", messages=(self.possible_message, *self.messages))


def clean_question(question: str) -> str:
    """Return the question without control characters. Raises `InvalidInput` if it is empty or too long."""
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInput(
            f"the question has {len(question)} characters, over the limit of {MAX_QUESTION_CHARS}",
            hint="ask in a few sentences, and name files instead of pasting them",
        )
    text = "".join(char for char in question if char in "\n\t" or not _is_control(char)).strip()
    if not any(char.isalnum() for char in text):
        raise InvalidInput("the question is empty", hint="ask where or how something is done")
    return text


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs")


def read_question(
    text: str, *, only_role: str | None = None, earlier: str | None = None, also: tuple[str, ...] = ()
) -> Question:
    """Read a question, as a follow-up if there is an `earlier` one.

    A request for a single role gets one of the intents of that role. `also` are hints of the caller.
    """
    whole = parse_question(text)
    said, asked = split_message(text)
    messages = _messages(text, said, asked, is_question=whole.is_question)
    intent = "error" if messages or _has_trace(whole) else recognise_intent(asked or text)
    possible = ROLE_INTENTS.get(only_role or "", (intent,))
    narrowing = None if earlier is None else read_narrowing(text)
    if narrowing is None or earlier is None:
        names = dict.fromkeys(_JOINED.findall(text.partition("\n")[0]), 1.0) | whole.names
        wanted = frozenset(("example", "docs") if intent == "examples" else ())
        parsed = replace(whole, names=names, wanted_categories=wanted)
    else:
        parsed = _parse_follow_up(text, earlier, narrowing)
    is_message = not messages and "\n" not in said and (asked or not whole.is_question)
    return Question(
        text=text,
        intent=intent if intent in possible else possible[0],
        parsed=replace(parsed, hints=parse_hints(also)),
        messages=messages,
        possible_message=said if is_message and len(_WORD.findall(said)) >= _MIN_MESSAGE_WORDS else "",
        narrowing=narrowing,
    )


def recognise_intent(question: str) -> Intent:
    """Return what the wording asks for. A text without any sign of it asks where something is."""
    title = question.strip().partition("\n")[0][:MAX_TITLE_CHARS]
    is_present = re.match(r"\W*(?:how|where) (?:is|are|does|do)\b", title, re.IGNORECASE) is not None
    for row in WORDINGS:
        if row.pattern.search(title) and not (row.intent == "changes" and is_present):
            return row.intent
    return "where"


def asks_a_question(task: str) -> bool:
    """Return whether a task asks something, or asks to look at something, so that its answer claims it."""
    title = task.strip().partition("\n")[0]
    return _ASKS_TO_LOOK.match(title) is not None or parse_question(title).is_question


def asks_for_number(text: str) -> bool:
    """Return whether a text asks how many or how large."""
    return _ASKS_FOR_NUMBER.search(text) is not None


def split_addresses(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text without its web addresses, and the addresses."""
    return _WEB_ADDRESS.sub(" ", text), tuple(_WEB_ADDRESS.findall(text))


def _parse_follow_up(text: str, earlier: str, narrowing: Narrowing) -> ParsedQuestion:
    """Parse a follow-up with the earlier question, whose words get half the weight."""
    wanted = frozenset[str](narrowing.wanted)
    new = _without_narrowing(text)
    if not parse_question(new).terms:
        return replace(parse_question(earlier), wanted_categories=wanted)
    return replace(parse_question(f"{new}\n{earlier}"), is_report="\n" in new, wanted_categories=wanted)


def _has_trace(whole: ParsedQuestion) -> bool:
    """Return whether a text contains a stack trace. One place alone may be what the question is about."""
    frames = len(whole.frames)
    return frames > 1 or (frames == 1 and _ERROR_WORD.search(whole.text) is not None)


def split_message(text: str) -> tuple[str, str]:
    """Return what a text cites, and what it asks about that or an empty string: `("not a file", "why?")`."""
    text = text.strip()
    if len(text) > MAX_TITLE_CHARS:  # a report, which has its question in its title
        return text, ""
    if (behind := _BEHIND.match(text)) and not _ASKS.match(behind["said"]):
        return behind["said"].strip(), behind["question"]
    if ahead := _AHEAD.match(text):
        return ahead["said"].strip(), ahead["question"].strip()
    return text, ""


def _messages(text: str, said: str, asked: str, *, is_question: bool) -> tuple[str, ...]:
    """Return the messages that a question quotes or pastes.

    A quoted value inside of a pasted message is a part of it, so quotations count only beside a question.
    """
    lines = [one for one in _ERROR_LINE.finditer(said) if not parse_question(one.group()).is_question]
    if lines:
        return tuple(dict.fromkeys(one["text"].strip() for one in lines))
    outside = _QUOTED_TEXT.sub(" ", text)
    if not _ERROR_WORD.search(outside) or not (is_question or asked):
        return ()
    if asked and _AHEAD.match(text.strip()) and len(_WORD.findall(_QUOTED_TEXT.sub(" ", said))) > 1:
        return (said,)
    found: dict[str, None] = {}
    for one in _QUOTED_TEXT.finditer(text):
        message = next(filter(None, one.groups()))
        is_code = one.group().startswith("`") and re.fullmatch(r"[\w.:$/\\<>()\[\]*&-]+", message)
        if len(_WORD.findall(message)) >= 2 and not is_code:
            found[message] = None
    return tuple(found)


def read_narrowing(question: str) -> Narrowing:
    """Return the kinds of files and the areas that a follow-up mentions."""

    def mentions(before: str, words: str) -> bool:
        return re.search(rf"{before}\b(?:{words})\b", question, re.IGNORECASE) is not None

    unwanted = frozenset[FileKind](kind for kind, words in _KINDS.items() if mentions(_NOT, words))
    named = frozenset[FileKind](kind for kind, words in _KINDS.items() if mentions("", words))
    either = "|".join(_KINDS.values())
    areas = [area for area in _AREA.findall(question) if not re.fullmatch(either, area, re.IGNORECASE)]
    alone = not parse_question(_without_narrowing(question)).terms
    return Narrowing(named - unwanted, unwanted, tuple(areas), alone or _ONLY.search(question) is not None)


def _without_narrowing(question: str) -> str:
    """Return a follow-up without the words that say where to look."""
    kinds = "|".join(_KINDS.values())
    return re.sub(rf"(?:{_NOT})?\b(?:{kinds})\b|{_ONLY.pattern}", " ", question, flags=re.IGNORECASE).strip()
