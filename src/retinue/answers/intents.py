"""Recognises what a question asks for, without a model: a place, a flow, callers, options, examples, ...

Also separates the words that make the request ("show existing patterns for") from the words that name its
subject, and notices questions that name nothing or are written in another language than the code.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from retinue.codebase import parse_question
from retinue.core import Intent

_NAME = r"[`'\"]?[\w.:$>-]+(?:\(\))?[`'\"]?"
_THING = (
    r"(?:files?|functions?|methods?|class(?:es)?|modules?|packages?|structs?|types?|places?|lines?|part|code)"
)
_OPTION = (
    r"(?:settings?|options?|flags?|switch(?:es)?|parameters?|env(?:ironment)? (?:variables?|vars?)"
    r"|preferences?|config(?:uration)?s?(?: (?:options?|keys?|values?|settings?|files?))?"
    r"|command[- ]line arguments?)"
)
_SET = r"(?:configure|set|change|disable|enable|limit|turn|override|adjust|increase|raise|lower|specify)"
_ASKED_PERSON = (
    r"(?:(?:some|any)(?:one|body)\b|(?:you|i|we) (?:please |quickly )?"
    r"(?:show|tell|explain|give|find|point|describe|list|help|walk|see|know|look|search|locate|summari[sz]e)\b)"
)
"""What follows "can" in a request: the reader is asked to do something."""
_CALLED = r"(?:called|used|invoked|instantiated|referenced|imported|constructed)"
_CALLS = r"(?:calls?|uses|invokes|instantiates|references|depends on|imports|constructs|creates|triggers)"
_CHANGED = r"(?:add|introduc|chang|remov|renam|delet|fix|deprecat|creat)"

_RULES: Mapping[Intent, tuple[str, ...]] = {
    "changes": (
        r"\bwhat(?:'s| has| was| is)?(?: been)? (?:changed|new)\b",
        r"\brecent(?:ly)? (?:chang|commit|added)",
        r"\bchanged (?:recently|lately|last|since)\b",
        r"\b(?:latest|last|recent) (?:changes?|commits?)\b",
        rf"\bwhen (?:was|were|did)\b.*\b{_CHANGED}",
        r"\bwho (?:changed|wrote|added|introduced|removed|fixed|last)\b",
        r"\bhistory of\b",
        r"\bwhich commits?\b",
        rf"\bwhy (?:was|were)\b.*\b{_CHANGED}",
    ),
    "examples": (
        r"\b(?:examples?|patterns?|precedents?|samples?|idioms?|conventions?)\b",
        r"\bhow (?:do|does|are) (?:we|others?|other \w+|people)\b",
        r"\bhow (?:do|should|can) (?:i|we|you) (?:use|call|write|implement|create|register|define|extend)\b",
        r"\bexisting (?:implementations?|uses?|usages?|code)\b",
        r"\b(?:show|give|list)(?: me| us)?(?: \w+){0,2}? existing\b",
        r"^\W*(?:which|what) existing\b",
        r"\b(?:one|another one|more|something) (?:like|similar to) (?:it|them|that|those|these)\b",
        r"\b(?:write|add|make|build|implement|create) (?:my|our|your|one's) own\b",
        r"\b(?:write|add|make|build|implement|create) (?:another|a new) one\b",
        r"\bto copy from\b",
        r"\bsimilar (?:code|implementations?|to)\b",
        r"\bdone elsewhere\b",
        r"\busages? of\b",
        r"\bimplementers? of\b",
    ),
    "callers": (
        rf"\b(?:who|what|which \w+)(?: else)? {_CALLS}\b",
        r"\bcallers? of\b",
        r"\bcall[- ]?sites?\b",
        r"\ball (?:uses|usages|references|calls|callers)\b",
        r"\b(?:references|calls) to\b",
        rf"\bwhere (?:is|are|else is) {_NAME}(?: (?:function|method|class|macro|type))? (?:get )?{_CALLED}\b",
        rf"\bis {_NAME} {_CALLED}\b",
    ),
    "options": (
        r"\bwhat configures\b",
        r"^\W*what (?:sets|limits|controls|determines|decides|governs|caps|bounds)\b",
        rf"^(?!\W*where\b).*\b(?:which|what|is there an?|are there|any|list|all|name of the)\b"
        rf".{{0,30}}?\b{_OPTION}\b",
        rf"\bhow (?:do|can|would|could|should) (?:i|we|you|one|users?|a user)(?: \w+)? {_SET}\b",
        r"\bhow (?:is|are|to) .{0,60}?\b(?:configured?|customi[sz]ed?)\b",
        rf"\bhow to {_SET}\b",
        r"\bwhere (?:is|are) .{0,60}?\bconfigured\b",
        r"\bdefault (?:value|timeout|size|limit|number|for)\b",
        r"\bby default\b",
        r"\bdefaults? to\b",
        r"\bwhat(?:'s| is) the (?:default|max(?:imum)?|min(?:imum)?|limit)\b",
        r"\bconfigurable\b",
        rf"\b(?:can (?:i|we|you|one)|is it possible to) {_SET}\b",
    ),
    "exists": (
        r"^\W*(?:is|are) there\b",
        rf"^\W*(?:can|could|does) (?!{_ASKED_PERSON})[\w.:-]+\b",
        r"^\W*is it possible\b",
        r"^\W*(?:is|are) .{1,60}\b(?:supported|available|possible|implemented|allowed|included)\b",
        r"^\W*(?:does|do|has|have|can|is) [\w.-]+\b.{0,40}?"
        r"\b(?:have|supports?|provide|include|offer|contain|handle|implement|exist|come with)\b",
        r"\bdo we have\b",
        r"\bis there (?:a|an|any|some|support)\b",
        r"\balready (?:have|exist|a )",
    ),
    "where": (
        rf"^\W*(?:where|in which|which {_THING}|what {_THING}|locate|find|search|look for)\b",
        r"\bwhere (?:is|are|do|does|can|was|did|in)\b",
        r"\bdefin(?:ed|ition of)\b",
        rf"\bwhich {_THING}\b",
    ),
    "how": (
        r"\b(?:how|why|explain|describe|walk me through|understand|trace|when)\b",
        r"\bwhat (?:happens|does|do|is|are)\b",
    ),
}
"""How questions of each intent are worded. The first intent that fits wins."""
_PRESENT = re.compile(r"\W*(?:how|where) (?:is|are|does|do)\b", re.IGNORECASE)
"""The beginning of a question about the code as it is, even if its subject is history."""
_WORDED: Mapping[Intent, re.Pattern[str]] = {
    intent: re.compile("|".join(rules), re.IGNORECASE) for intent, rules in _RULES.items()
}

_ERROR_LINE = re.compile(
    r"^[ \t]*(?:[\w.]*(?:Error|Exception|Warning|Panic)|panic|fatal|error(?:\[\w+\])?|FATAL|ERROR|WARNING"
    r"|(?:[a-z_]\w*\.)+[A-Z]\w*)\s?: \S.*$",
    re.MULTILINE,
)
_PROGRAM_LINE = re.compile(r"^[ \t]*(?:[a-z][\w-]{0,15}: |[A-Z]{4,12} (?=[A-Z]))\S.*[^?\s]\s*$")
"""What a program prints about itself (`rg: unknown flag`), or a reply that starts with a code in capitals."""
_FILLED_LINE = re.compile(r"^[ \t]*[A-Z][a-z]+ (?:[^\n\"'`?]+ )?(?:\"[^\"\n]+\"|'[^'\n]+')[^\n?]*$")
"""A sentence with a quoted value and no question mark: `Unsupported config type "foo"`."""
_TASKS = re.compile(
    r"\s*(?:add|allow|avoid|bump|change|create|drop|explain|find|fix|handle|implement|improve|list|make|move|print"
    r"|refactor|remove|rename|replace|return|search|set|show|support|update|use)\b",
    re.IGNORECASE,
)
"""The beginning of a text that tells somebody to do something."""
_COMMIT_KINDS = re.compile(r"\s*(?:feat|fix|docs?|chore|refactor|perf|tests?|build|ci|style|note|todo)\b")
_ERROR_WORDS = re.compile(
    r"\b(?:errors?|exceptions?|warnings?|messages?|rais(?:es?|ed|ing)|throws?|thrown|fail(?:s|ed|ure)?|panics?"
    r"|crash(?:es|ed)?|complains?|says?|prints?|printed|log(?:s|ged)|come from|text|mean|why)\b",
    re.IGNORECASE,
)
_MIN_PRINTED_WORDS = 4
_QUOTED_TEXT = re.compile(
    r"\"([^\"\n]{6,300})\"|“([^”\n]{6,300})”|`([^`\n]{6,300})`|(?<!\w)'((?:[^'\n]|'(?=\w)){6,300})'(?!\w)"
)

_POLITE = (
    r"(?:please|could you|can you|would you|kindly|tell me|let me know|i(?: a|')m looking for|we need"
    r"|i (?:want|need|would like) to (?:know|see|find|understand)|help me(?: to)?(?: (?:find|understand))?)"
)
_REQUEST_PHRASES = (
    r"(?:show|give|list|find|get|search for|look for|locate|explain|describe|point|walk)(?: (?:me|us))?"
    r"(?: (?:to|through|how))?(?: (?:all|some|any|the|an?|existing|few|good|typical|similar|other|more))*"
    r"(?: (?:examples?|patterns?|usages?|uses|samples?|implementations?|code|places?|references))?"
    r"(?: (?:for|of|to|where|that|how|about|in which|on))?",
    r"(?:what|which) (?:are|is) the (?:existing )?(?:examples?|patterns?|usages?) (?:for|of)",
    r"(?:examples?|patterns?|samples?|usages?) (?:for|of|how)",
    r"what (?:has )?(?:been )?(?:changed|new)(?: recently| lately)?(?: (?:in|about|with|to|for))?",
    r"what(?:'s| is) new(?: (?:in|about|with))?",
    r"(?:is|are) there (?:an?|any|some)?(?: (?:built[- ]in )?(?:support for|way (?:to|of)))?",
    r"does (?:it|this(?: project| library| code)?) (?:have|support|provide|offer)",
    r"(?:can|could) (?:i|we|you|one|it)(?: (?:use|have))?",
    r"is it possible (?:to|for)",
    r"do we have (?:an?|any|some)?",
    r"(?:who|what)(?: else)? (?:calls|uses|invokes|references)",
    r"(?:callers?|call[- ]?sites?|usages?) of",
    r"what configures",
    r"(?:what|which) existing",
)
_REQUESTS = re.compile(rf"^\W*(?:{_POLITE}[\s,:]*)*(?:{'|'.join(_REQUEST_PHRASES)})(?=\s|$)", re.IGNORECASE)
"""The beginning of a question that only asks. None of its words is searched for."""
_REQUEST_ENDINGS = re.compile(
    r"[,;.]?\s+(?:(?:so (?:that )?)?(?:i|we) (?:want to|need to|would like to|can|could) |(?:in order )?to )"
    r"(?:write|add|make|build|implement|create|copy)"
    r"(?: (?:my|our|your) own| another(?: one)?| a new one| one like (?:it|them|that)| from)+\s*(?=[?.!]*$)"
    r"|\s+(?:in (?:this|the) (?:codebase|code|project|repo(?:sitory)?)|in here|please|recently|lately|exactly"
    r"|at all|for me)\s*(?=[?.!]*$)",
    re.IGNORECASE,
)


def recognise_intent(question: str) -> Intent:
    """Return what a question asks for. A text without any sign of it asks where something is."""
    text = question.strip()
    title = text.partition("\n")[0]
    if _has_trace(text) or error_messages(text):
        return "error"
    is_present = _PRESENT.match(title) is not None
    for intent, pattern in _WORDED.items():
        if pattern.search(title) and not (intent == "changes" and is_present):
            return intent
    return "where"


_NARROW_EXAMPLES = re.compile(r"\b(?:examples?|samples?|usages?|demos?)\b", re.IGNORECASE)


def wanted_categories(question: str) -> frozenset[str]:
    """Return the categories of files that are as good as the project's code for a question.

    Existing implementations are also in examples. Who asks for examples may find them in the documentation.
    """
    if recognise_intent(question) != "examples":
        return frozenset()
    return frozenset(("example", "docs") if _NARROW_EXAMPLES.search(question) else ("example",))


def _has_trace(text: str) -> bool:
    """Return whether a text contains a stack trace. One place alone may be what the question is about."""
    frames = len(parse_question(text).frames)
    return frames > 1 or (frames == 1 and _ERROR_WORDS.search(text) is not None)


def error_messages(question: str) -> tuple[str, ...]:
    """Return the messages that a question quotes or pastes, most telling first."""
    lines = [found.group().strip() for found in _ERROR_LINE.finditer(question)]
    pasted = [line.partition(": ")[2] for line in lines]
    if not pasted and _is_printed(question):
        pasted = [re.sub(r"^\s*[a-z][\w-]*: ", "", question).strip()]
    quoted: list[str] = []
    for found in _QUOTED_TEXT.finditer(question):
        message = next(filter(None, found.groups()))
        is_code = found.group().startswith("`") and re.fullmatch(r"[\w.:$/\\<>()\[\]*&-]+", message)
        if len(re.findall(r"[^\W\d_]{2,}", message)) >= 2 and not is_code:
            quoted.append(message)
    outside = _QUOTED_TEXT.sub(" ", question)
    if not _ERROR_WORDS.search(outside):
        quoted = []
    return tuple(dict.fromkeys((*pasted, *quoted)))


def _is_printed(question: str) -> bool:
    """Return whether a single line reads like something that a program printed, and not like a request."""
    words = len(re.findall(r"[^\W\d_]{2,}", question))
    if _FILLED_LINE.match(question) and not _TASKS.match(question):
        return words >= _MIN_PRINTED_WORDS and not any(one.search(question) for one in _WORDED.values())
    return (
        words >= _MIN_PRINTED_WORDS
        and _PROGRAM_LINE.match(question) is not None
        and not _COMMIT_KINDS.match(question)
        and not any(pattern.search(question.partition(": ")[2]) for pattern in _WORDED.values())
    )


_ASKS = re.compile(
    r"\W*(?:how|where|what|which|who|whose|why|when|explain|describe|tell|give|is|are|do|does|please)\b",
    re.IGNORECASE,
)
_MIN_MESSAGE_WORDS = 3


def may_be_message(question: str) -> bool:
    """Return whether a text may be a pasted message: one line that is neither a question nor an instruction.

    `could not open option file` has no sign of an error. Only the code shows whether a program prints it.
    """
    text = question.strip()
    return (
        "\n" not in text
        and "?" not in text
        and len(re.findall(r"[^\W\d_]{2,}", text)) >= _MIN_MESSAGE_WORDS
        and not _ASKS.match(text)
        and not _TASKS.match(text)
    )


def without_request_words(question: str) -> str:
    """Return the question without the words that only make the request. The subject is never emptied."""
    title, newline, body = question.partition("\n")
    shorter = _REQUESTS.sub(" ", title, count=1)
    shorter = _REQUEST_ENDINGS.sub("", shorter).strip()
    if not re.search(r"\w{2}", shorter):
        return question
    return f"{shorter}{newline}{body}"


_FUNCTION_WORDS = {
    "German": "der die das den dem des ein eine einen einem und oder nicht ist sind wird werden wie wo was "
    "wer welche welcher warum mit von zu zum zur auf für bei gibt es im durch wenn kann man",
    "French": "le la les un une des du et ou est sont où comment quel quelle pourquoi dans avec pour sur "
    "qui que ce cette il elle fait au aux pas être",
    "Spanish": "el la los las un una de del y o es son dónde donde cómo como qué cuál por para con en se que "
    "no hay está están al lo cuando",
    "Italian": "il lo la gli le un una di del della e è sono dove come quale perché con per nel nella che "
    "non si",
    "Portuguese": "o a os as um uma de do da dos das e é são onde como qual por para com em no na que não se "
    "está",
    "Dutch": "de het een en of is zijn wordt worden waar hoe wat welke waarom met van op voor bij niet er "
    "dat als",
    "Polish": "gdzie jak jest są czy dlaczego który która w na z do nie się i oraz przez dla",
}
_WORDS_OF = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_ENGLISH_WORDS = """
the a an is are was were where how what which who why does do did in of for to and or by with on from that
this it when be can has have not there if as at into
"""
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_SCRIPTS = {
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "CJK": "Chinese",
    "CYRILLIC": "Russian or another language in Cyrillic letters",
    "GREEK": "Greek",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Hindi",
    "THAI": "Thai",
}
_MIN_FUNCTION_WORDS = 2
_FOREIGN_SHARE = 0.3


def foreign_language(question: str) -> str | None:
    """Return the language of a question that is not English, or None.

    Judges by the script of the letters, then by the small words that every sentence has.
    """
    letters = [char for char in question if char.isalpha() and not char.isascii()]
    scripts = Counter(unicodedata.name(char, "").split(" ")[0].split("-")[0] for char in letters)
    all_letters = sum(char.isalpha() for char in question)
    if scripts.get("HIRAGANA", 0) + scripts.get("KATAKANA", 0) > 0.1 * max(1, all_letters):
        return "Japanese"
    for script, count in scripts.most_common(1):
        if script in _SCRIPTS and count >= _FOREIGN_SHARE * all_letters:
            return _SCRIPTS[script]
    words = re.findall(r"[^\W\d_]+", question.lower())
    english = sum(word in _ENGLISH for word in words)
    counts = {language: sum(word in known for word in words) for language, known in _WORDS_OF.items()}
    best = max(counts, key=lambda language: counts[language])
    is_foreign = counts[best] >= _MIN_FUNCTION_WORDS and counts[best] > 2 * english
    return best if is_foreign else None


def function_words(language: str) -> frozenset[str]:
    """Return the small words of a language, as far as they are known."""
    return _WORDS_OF.get(language, frozenset())


@dataclass(frozen=True, slots=True)
class Brief:
    """How a question is to be answered."""

    intent: Intent = "how"
    messages: tuple[str, ...] = ()
    """Error messages that it quotes."""
    language: str | None = None
    """The language of the question, if it is not English."""


ROLE_INTENTS: Mapping[str, tuple[Intent, ...]] = {
    "locator": ("where", "error", "options", "exists"),
    "analyzer": ("how", "callers", "options", "error", "changes"),
    "patterns": ("examples",),
}
"""The intents that a request for a single role may have. Any other question gets the first one."""


def brief_for(question: str, only_role: str | None = None) -> Brief:
    """Read a question. A request for a single role has one of the intents of that role."""
    intent = recognise_intent(question)
    possible = ROLE_INTENTS.get(only_role or "", (intent,))
    chosen = intent if intent in possible else possible[0]
    return Brief(chosen, error_messages(question), foreign_language(question))
