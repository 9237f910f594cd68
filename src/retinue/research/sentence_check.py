"""Compares a sentence that a model wrote about some code with that code (P3).

A sentence passes if it describes the code in the code's own words: its names, numbers and quoted texts occur
there, what it says is called is called there, and most of its other words occur there too. Small models
connect whatever they are shown with the question, so words of the question are no evidence. Claims that code
cannot show, such as that something never happens, do not pass.

A sentence that repeats a comment passes, because the code says it. A sentence without a subject gets the name
of the definition that it describes. The check is strict: it is better to drop a true sentence than to keep a
false one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from retinue.answers import ShownCode
from retinue.codebase import split_identifier, stem

MIN_SUPPORT = 0.7
"""The share of a sentence's words that the code must contain."""
MIN_NEW_WORDS = 1
"""How many words of a sentence must be in the code and not in the question."""
MIN_SENTENCE_WORDS = 4
CUT_FROM_CHARS = 150
"""A text of this length that does not end like a sentence was cut by the limit of the reply's schema."""

_SENTENCE_END = re.compile(r"(?<=[.!?])[\s]+(?=[A-Z`\"'(])")
_COMPLETE = re.compile(r"[.!?)\"'`\]]\s*$")
_BACKTICKED = re.compile(r"`([^`\n]+)`")
_IDENTIFIER = re.compile(
    r"\w{2,}(?:(?:\.|::|->|/)\w+)+|[A-Za-z]\w*_\w+|_\w{2,}|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"
    r"|\w+(?=\((?!s\)))"
)
"""Matches text that can only be a name: an identifier, a path, a call."""
_CAPITALIZED = re.compile(r"(?<=[a-z,;] )[A-Z]\w+|\b[A-Z][A-Z0-9]+\b")
"""A capitalised word inside a sentence: a name, such as the name of a product."""
_REFERS_BACK = re.compile(
    r"(?:(?:if|when|then|otherwise)\b,?\s+)?(?:they|this|these|that|those)\b|if it\b", re.I
)
_IT = re.compile(r"It (?:then |also |first )?(?=\w+s\b)")
_INFERENCE = re.compile(
    r",?\s(?:which (?:means|ensures|allows|makes|is)|meaning|so that|so it|thus|therefore|hence|effectively|"
    r"allowing|making|ensuring|indicating|including|such as|because|thereby|in order to)\b"
)
"""Where a sentence stops to describe code and begins to conclude something from it."""
_CLAUSE_END = re.compile(r",\s")
_QUOTED = re.compile(r"\"([^\"\n]{2,})\"|(?<!\w)'([^'\n]{2,})'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[._]\d+)*(?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_PART_OF_NAME = re.compile(r"[A-Za-z_]\w*")
_UNPROVABLE = re.compile(
    r"\b(?:not|never|no|nor|none|nothing|cannot|without|only|always|ensur\w+|guarante\w+|prevent\w*|must|likely|"
    r"probably|typically|usually|might|could|should|ignore|useful|helpful|important)\b|n't\b",
    re.I,
)
_UNSAFE = re.compile(
    r"://|\bwww\.|[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]|```|\]\(|<\w"
    r"|\b(?:disregard|ignore (?:all|any|the|previous)|instructions?|system prompt)\b"
    r"|\byou (?:must|should|need)\b",
    re.I,
)
_SPEAKS_TO_THE_READER = re.compile(
    r"\b(?:I|me|my)\b|\b(?i:the user|assistant|language model|AI (?:model|agent))\b"
    r"|(?:^|[\s\"'`(])(?:~|\.{0,2})/[\w.]|\b(?i:run|use|call|execute|invoke)\b.*\b(?i:tool|shell|terminal)\b"
    r"|\b(?i:tool|shell|terminal)\b.*\b(?i:run|use|call|execute|invoke)\b"
)
"""What a page says to a program that reads it: claims about the user, files of the machine, uses of tools."""
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(\)")
_CALLS = re.compile(
    r"\b(?:calls?|calling|invokes?|invoking)\s+(?:the\s+|an?\s+)?(?:(?:method|function)\s+)?`?([A-Za-z_][\w.:]*)"
)
_CALLED_BY = re.compile(
    r"\b(?:called|invoked|used)\s+(?:by|from|in|inside|within)\s+(?:the\s+)?(?:(?:method|function)\s+)?"
    r"`?([A-Za-z_][\w.:]*)"
)
_DEFINED = re.compile(
    r"\b(?:defines?|declares?)\s+(?:an?|the)\s+(?:[\w-]+\s+){0,2}?(?:called\s+|named\s+)?`([A-Za-z_]\w*)"
)
_RETURNS = re.compile(r"\breturns?\s+(?:the\s+|an?\s+)?`?([A-Za-z_]\w*|\d+)")
_RAISES = re.compile(r"\b(?:raises?|throws?)\s+(?:the\s+|an?\s+)?`?([A-Za-z_]\w*)")
_DEFINES = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|trait|impl|type|enum|module|sub|void|static|public|"
    r"private|protected|const|let|var)\b"
)

_GENERIC_WORDS = """
the this that these those and for from with into onto out over under then else when while whether which
who what how why where there here it its they them their each any some such same other another than too
very also both either can may will would does did done has have had having been being are was were is be
by of in on at as to or if so up do an but after before between until during through via method function
class object value variable parameter argument field property attribute constant type instance code line
call return use used check set get create pass give given take make base specify specified current new
first last next contain include define implement handle determine perform process work happen show find
found name named true false null none way case example part provide allow need result otherwise already
within inside using based following corresponding associated appropriate responsible purpose ensure
represent refer order means mean indicate mechanism operation logic
"""
"""Words that describe any code. They are no evidence, and need none."""


@lru_cache(maxsize=1)
def _generic_stems() -> frozenset[str]:
    return frozenset(map(stem, _GENERIC_WORDS.split()))


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text. If the last one was cut, yields its clauses before the cut."""
    *whole, last = _SENTENCE_END.split(" ".join(text.split()))
    yield from filter(None, whole)
    if _COMPLETE.search(last) or len(text) < CUT_FROM_CHARS:
        yield last
    elif "," in last:
        yield f"{last.rpartition(',')[0]}."


def part_that_holds(sentence: str, code: ShownCode, question: str) -> str | None:
    """Return a sentence, or the longest beginning of it up to a comma, that passes; None if none does."""
    if inference := _INFERENCE.search(sentence):
        sentence = f"{sentence[: inference.start()]}."
    ends = [len(sentence), *(found.start() for found in reversed(list(_CLAUSE_END.finditer(sentence))))]
    for end in ends:
        part = sentence[:end].rstrip()
        if part.count("(") == part.count(")") and objection_to(part, code, question) is None:
            return _with_subject(part if end == len(sentence) else f"{part}.", code)
    return None


def _with_subject(sentence: str, code: ShownCode) -> str:
    """Return a sentence that says what it is about."""
    if code.name and (_IT.match(sentence) or not any(_names_in(sentence))):
        changed = _IT.sub(f"`{code.name}` ", sentence, count=1)
        return changed if changed != sentence else f"`{code.name}`: {sentence[0].lower()}{sentence[1:]}"
    return sentence


def is_unsafe(text: str) -> bool:
    """Return whether a text has a link, markup or an instruction to its reader."""
    return _UNSAFE.search(text) is not None


def objection_to(sentence: str, code: ShownCode, question: str) -> str | None:
    """Return why a sentence about some code does not pass, or None if it passes."""
    if is_unsafe(sentence):
        return "it contains a link, markup or an instruction"
    if len(_WORD.findall(sentence)) < MIN_SENTENCE_WORDS or _copies(sentence, code, prose=False):
        return "it is no sentence"
    if sentence[:1].islower() and not _IDENTIFIER.match(sentence):
        return "it is a part of a sentence"
    if _REFERS_BACK.match(sentence) or (_IT.match(sentence) and not code.name):
        return "it does not say what it is about"
    if code.name and _copies(sentence, code, prose=True):
        return None
    if _UNPROVABLE.search(sentence):
        return "code cannot show that"
    names = list(dict.fromkeys(_names_in(sentence)))
    for name in names:
        if not _occurs(name, code):
            return f"the code does not contain {name}"
    for word in _CAPITALIZED.findall(_without_names(sentence)):
        known = f"{code.text}\n{question}".casefold()
        if stem(word.lower()) not in _generic_stems() and not _has_word(word.casefold(), known):
            return f"the code does not contain {word}"
    for number in _NUMBER.findall(_BACKTICKED.sub(" ", sentence)):
        if not re.search(rf"(?<![\w.]){re.escape(number)}(?!\w)", code.text):
            return f"the code does not contain {number}"
    if not code.name and not any(name.casefold() not in question.casefold() for name in names):
        return "it names nothing in the code"
    return _objection_to_relations(sentence, code) or _objection_to_words(sentence, code, question)


def line_of(sentence: str, code: ShownCode) -> int:
    """Return the line of the code that a sentence is about: the one with most of its names and words."""
    names, words = list(_names_in(sentence)), _content_stems(sentence)

    def score(number: int, line: str) -> float:
        own = _stems_of(line)
        named = sum(_has_word(name, line) for name in names)
        return (2 * named + sum(word in own for word in words)) * (0.5 if number in code.prose else 1.0)

    numbered = list(enumerate(code.lines, code.first))
    best = max(numbered, key=lambda one: (score(*one), -one[0]))[0]
    return code.line if best in code.prose and code.line else best


def _names_in(sentence: str) -> Iterator[str]:
    """Yield what a sentence names: marked and quoted text, and identifiers."""
    for found in _BACKTICKED.findall(sentence):
        yield found.strip().rstrip("(),.;:").removesuffix("()")
    rest = _BACKTICKED.sub(" ", sentence)
    for one, other in _QUOTED.findall(rest):
        yield one or other
    yield from _IDENTIFIER.findall(_QUOTED.sub(" ", rest))


def _without_names(sentence: str) -> str:
    return _IDENTIFIER.sub(" ", _QUOTED.sub(" ", _BACKTICKED.sub(" ", sentence)))


def _occurs(name: str, code: ShownCode) -> bool:
    """Return whether a name occurs in the code itself. In comments alone, it may be anything."""
    lines = [line for number, line in enumerate(code.lines, code.first) if number not in code.prose]
    text = "\n".join(lines if lines else code.lines)
    if name == code.path or _has_word(name, text):
        return True
    parts = _PART_OF_NAME.findall(name)  # `self.fingerprints.add` for `fingerprints.add(…)`
    return len(parts) > 1 and " " not in name and all(_has_word(part, text) for part in parts)


def _has_word(name: str, text: str) -> bool:
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    after = r"(?!\w)" if re.search(r"\w$", name) else ""
    return re.search(f"{before}{re.escape(name)}{after}", text) is not None


def _objection_to_relations(sentence: str, code: ShownCode) -> str | None:
    """Check what a sentence says is called, returned or raised."""
    lines = [line for number, line in enumerate(code.lines, code.first) if number not in code.prose]
    for name in _CALLED.findall(sentence):
        if not re.search(rf"(?<!\w){re.escape(name)}!?\s*\(", "\n".join(lines)):
            return f"the code does not call {name}"
    for name in _found_names(_CALLS, sentence, code):
        calls = [line for line in lines if re.search(rf"(?<!\w){re.escape(name)}!?\s*\(", line)]
        if not any(not _DEFINES.search(line.split(name)[0]) for line in calls):
            return f"the code does not call {name}"
    for name in _found_names(_CALLED_BY, sentence, code):
        if not any(_has_word(name, line) and "(" in line for line in lines[:3]):
            return f"the code does not show what {name} calls"
    for name in _found_names(_DEFINED, sentence, code):
        if name != code.name and not any(
            _has_word(name, line) and _DEFINES.search(line.split(name)[0]) for line in lines
        ):
            return f"the code does not define {name}"
    for pattern, keyword in ((_RETURNS, "return"), (_RAISES, r"(?:raise|throw|panic|Err|reject|error)")):
        keyed = [line for line in lines if re.search(rf"\b{keyword}", line)]
        for name in _found_names(pattern, sentence, code):
            if keyed and not any(_has_word(name, line) for line in keyed):
                return f"the code does not do that with {name}"
    return None


def _found_names(pattern: re.Pattern[str], sentence: str, code: ShownCode) -> Iterator[str]:
    """Yield the names of the code that a pattern finds in a sentence."""
    for found in pattern.findall(sentence):
        name = re.split(r"\.|::", found.rstrip(".:"))[-1]
        if name and (f"`{found}" in sentence or _IDENTIFIER.fullmatch(name)) and _has_word(name, code.text):
            yield name


def _objection_to_words(sentence: str, code: ShownCode, question: str) -> str | None:
    """Check how many words of a sentence the code contains."""
    wanted = _content_stems(sentence)
    known = _stems_of(f"{code.path}\n{code.text}")
    if len((wanted & known) - _stems_of(question)) < MIN_NEW_WORDS:
        return "it says nothing about the code"
    missing = sorted(word for word in wanted if word not in known)
    if len(missing) > (1 - MIN_SUPPORT) * len(wanted):
        return f"the code does not contain {', '.join(missing[:4])}"
    return None


def _content_stems(sentence: str) -> frozenset[str]:
    return _stems_of(sentence) - _generic_stems()


@lru_cache(maxsize=256)
def _stems_of(text: str) -> frozenset[str]:
    """Return the stems of all words in a text, also of those inside identifiers."""
    parts = (part for word in re.findall(r"\w+", text) for part in (word, *split_identifier(word)))
    return frozenset(stem(part.lower()) for part in parts if len(part) > 1 and not part.isdigit())


def _copies(sentence: str, code: ShownCode, *, prose: bool) -> bool:
    """Return whether a sentence repeats lines of the code, or of its comments."""
    numbered = enumerate(code.lines, code.first)
    chosen = " ".join(line for number, line in numbered if (number in code.prose) is prose)
    return _flat(sentence) in _flat(chosen)


def _flat(text: str) -> str:
    """Return a text without blanks, marks of comments and other punctuation."""
    return re.sub(r"[\W_]+", "", text).casefold()


_NEGATION = re.compile(
    r"\b(?:not|never|no|nor|none|nothing|cannot|without|unless|removed|deprecated)\b|n't\b", re.I
)
_CONDITION = re.compile(
    r"\b(?:only|always|sometimes|if|except|until|before|after|since|above|below|under|over|more|less|fewer|least|most"
    r"|minimum|maximum|min|max|(?:en|dis)abl\w+|true|false|on|off|required|optional|(?:de|in)creas\w+"
    r"|(?:in|ex)clud\w+|allow\w*|den(?:y|ied|ies)|forbid\w*|first|last|old\w*|new\w*)\b",
    re.IGNORECASE,
)
"""Words that change what a sentence says if they are added, dropped or replaced."""
_QUANTITY = re.compile(
    r"(?<![\w.])(?:\d+(?:[.,_]\d+)*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty"
    r"|fifty|sixty|hundred|thousand|million|half|once|twice|both|all|any|every|each)(?![\w])",
    re.IGNORECASE,
)
_PROSE_CLAUSE_END = re.compile(r"[,;:]\s+|\s+(?:and|but|while|whereas|or)\s+|\s+\(|\)\s*")
MIN_CLAUSE_WORDS = 3


def holds_for_prose(sentence: str, prose: str) -> bool:
    """Return whether a sentence says only what some prose says, such as a passage of a web page.

    A sentence of the prose passes, unless it speaks to the reader. Each clause of any other must be supported
    by one clause of the prose: with its names, most of its words, the same conditions, such as "only" and
    "not", and the same words after its numbers.
    """
    if _UNSAFE.search(sentence) or len(_WORD.findall(sentence)) < MIN_SENTENCE_WORDS:
        return False
    if _SPEAKS_TO_THE_READER.search(sentence) or _REFERS_BACK.match(sentence):
        return False
    sentences = [each for line in prose.split("\n") for each in _SENTENCE_END.split(line) if each.strip()]
    if _flat(sentence) in map(_flat, sentences):
        return True
    known = prose.casefold()
    names = [*_names_in(sentence), *_CAPITALIZED.findall(_without_names(sentence))]
    if not all(_has_word(name.casefold(), known) for name in names):
        return False
    parts = [part for each in sentences for part in _clauses(each)]
    parts += [each for each in sentences if len(_QUANTITY.findall(each)) < 2]
    return all(any(_supports(part, clause) for part in parts) for clause in _clauses(sentence))


def _clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence. Words that say nothing alone stay with the clause before them."""
    found: list[str] = []
    for part in _PROSE_CLAUSE_END.split(sentence):
        if found and min(len(_WORD.findall(found[-1])), len(_WORD.findall(part))) < MIN_CLAUSE_WORDS:
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def _supports(part: str, clause: str) -> bool:
    """Return whether a part of some prose says what a clause says."""
    wanted, said = _content_stems(clause), _stems_of(part)
    if not wanted or len(wanted - said) > (1 - MIN_SUPPORT) * len(wanted):
        return False
    if bool(_NEGATION.search(clause)) != bool(_NEGATION.search(part)):
        return False
    if not all(found.casefold() in part.casefold() for found in _UNPROVABLE.findall(clause)):
        return False
    return _conditions(clause) == _conditions(part) and _quantities(clause) <= _quantities(part)


def _conditions(text: str) -> set[str]:
    return {stem(found.lower()) for found in _CONDITION.findall(text)}


def _quantities(text: str) -> set[tuple[str, str]]:
    """Return the numbers in a text, each with the stem of the word that follows it."""
    found: set[tuple[str, str]] = set()
    for number in _QUANTITY.finditer(text):
        after = _WORD.search(text, number.end())
        found.add((number[0].lower(), stem(after[0].lower()) if after else ""))
    return found
