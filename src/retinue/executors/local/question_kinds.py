"""Classifies questions: for an explanation, a place, a number or a text. Splits those with two parts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from retinue.core import NotJson
from retinue.executors.local.replies import first_json_value
from retinue.tools import WHAT_HAPPENS, asking_clause, content_words, is_yes_or_no, sentences_of

MAX_QUESTION_CHARS = 300
MIN_OWN_WORDS = 2
"""A part of a question with fewer words of its own is about the answer to the other part."""
HANDOFF_BLOCK = "```json\n{"

_ASKS_HOW = re.compile(
    r"^\W*(?:please )?(?:how (?!many|much|long|often|large|big|old|wide|deep)|why\b|from where\b|explain"
    rf"|describe|{WHAT_HAPPENS}\b)",
    re.IGNORECASE,
)
_ASKS_WHAT_TO_DO = re.compile(
    r"\bhow (?:do|can|could|should|would) (?:i|we|you|one)\b|\bhow to\b", re.IGNORECASE
)
_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|large|big|old|wide|deep)\b"
    r"|\b(?:number|default|maximum|minimum|limit|size|code|value|port|timeout|duration)\b",
    re.IGNORECASE,
)
_NEEDS_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|large|big|old|wide|deep)\b|\b(?:which|what) (?:number|port|exit code)\b"
    r"|\b(?:below|above|under|over|after|from) (?:which|what) (?:\w+ )?(?:time|size|length|number|age)\b"
    r"|\bat (?:which|what) interval\b",
    re.IGNORECASE,
)
_ASKS_WHAT_SETS = re.compile(
    r"\W*(?:which|what|where|who)\b(?! number| port| exit code).* how ", re.IGNORECASE
)
"""Asks for what decides a number, such as "which option limits how deep links are followed?"."""
_ASKS_WHERE = re.compile(r"^\W*(?:where|which (?:function|method|class|file)|in which)\b", re.IGNORECASE)
_ASKS_WHERE_DONE = re.compile(
    r"^\W*(?:where|in which)\b.*\b(?:decid|determin|check|validat|verif|comput|calculat|handl|pars|convert|"
    r"chosen|select|dropp|remov|sent|written|made|creat|perform|execut|call|rais|thrown|caught|recover|look|"
    r"resolv|match|appl|enforc|clean)",
    re.IGNORECASE,
)
"""Asks for code that does something, not for a declaration."""
_ASKED_FOR = re.compile(
    r"\b(?:how many|which|what(?: (?:is|are|was|were) (?:the|its|their))?) "
    r"([a-z-]+(?: (?:headers?|codes?|status|files?|folders?|messages?|names?|class|errors?|exceptions?|types?"
    r"|formats?|variables?|flags?|characters?|signals?|address|extensions?|events?|fields?|columns?)\b)?)",
    re.IGNORECASE,
)
"""What a question asks for, such as the status in "which status does the server send?", or the "request
header"."""
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_MEASURE_WORDS = """
size length time times duration width height depth age amount happens changes
milliseconds seconds minutes hours days bytes kilobytes megabytes
"""
_MEASURES = frozenset(_MEASURE_WORDS.split())
"""Words that answers replace by a unit, such as "bytes" for a size, or by another one."""
_ASKS_FOR_TEXT = re.compile(
    r"\b(?:which|what) (?:(?:is|are) (?:the|its|their) )?(?:\w+ )?(?:message|text|title|label|words)\b",
    re.IGNORECASE,
)
_ASKS_FOR_OPTION = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,2}(?:option|flag|switch|setting|argument|parameter)\b", re.IGNORECASE
)
_MEASURE = re.compile(
    r"\bhow (?:long|large|big|old|wide|deep|often|far)\b"
    r"|\bhow many (?:milliseconds|seconds|minutes|hours|days|bytes|kilobytes|megabytes|times)\b",
    re.IGNORECASE,
)
_DEFAULT_CLAUSE = re.compile(
    r",?\s*\b(?:if|when|unless) (?:I|you|nobody|nothing)\b[^,?]{0,40}"
    r"(?:\b(?:nothing|none|not|no|any|anything|set|one)\b|n't\b)[^,?]{0,30}",
    re.IGNORECASE,
)
"""Asks for a default, such as "if I set nothing"."""
_PLAIN_QUESTION = re.compile(
    r"^\W*(?!\w+ you\b)(?:(?:for|in|to|by|at|on|of|from|with|below|above|under|over|after) )?"
    r"(?:where|how|what|which|who|whose|why|when|is|are|does|do|did|can|could|has|have|will)\b"
    r"[^\n?]{1,300}\?\s*$",
    re.IGNORECASE,
)
"""One question and nothing else. A task to build something may name what is not there yet."""
_STATEMENT = re.compile(
    r"\W*(?:I|my|we|our|the|there|it|this|that|these|some|a|an|if|when|with|in|on)\b", re.IGNORECASE
)
"""Begins a sentence that tells something before the question."""
_PREPOSITIONS = "in|into|to|by|with|within|from|at|on|for|of|under|after|before|during|through|against"
_SECOND_PART = re.compile(
    r"(?<=\S)[,;]? and (?P<second>"
    rf"(?:(?:{_PREPOSITIONS}) )?"
    r"(?:which|what|where|how|who|whose|when|why)\b.*)$",
    re.IGNORECASE,
)

_IS_UNFINISHED = re.compile(rf"\b(?:where|when|why|how|which|what|who|{_PREPOSITIONS})$", re.IGNORECASE)
"""Ends text that is no question without what follows."""
_REFERS = re.compile(r"\b(?:its?|their|they|them|that|those|then)\b", re.IGNORECASE)


def asks_how(question: str) -> bool:
    """Return whether a question asks for an explanation."""
    return _ASKS_HOW.search(asking_clause(question)) is not None


def asks_where(question: str) -> bool:
    """Return whether a question asks for a place."""
    return _ASKS_WHERE.search(asking_clause(question)) is not None


def needs_code(question: str) -> bool:
    """Return whether only code answers a question. Documentation says what to do, not where it is done."""
    explains = asks_how(question) and not _ASKS_WHAT_TO_DO.search(question)
    return asks_where(question) or explains


def asks_for_code(question: str) -> bool:
    """Return whether a question asks for a place or an explanation, and not for a yes or no."""
    return (asks_where(question) or asks_how(question)) and not is_yes_or_no(question)


def asks_where_done(question: str) -> bool:
    """Return whether a question asks for code that does something, not for a declaration."""
    return _ASKS_WHERE_DONE.search(asking_clause(question)) is not None


def asks_for_text(question: str) -> bool:
    """Return whether a question asks for a message or another text."""
    return _ASKS_FOR_TEXT.search(question) is not None


def asks_for_option(question: str) -> bool:
    """Return whether a question asks for something that users can set."""
    return _ASKS_FOR_OPTION.search(question) is not None


def subject_of(question: str) -> str:
    """Return a question without words that only ask for a measure or a default: "how many seconds"."""
    subject = _MEASURE.sub(" ", question)
    asked = _DEFAULT_CLAUSE.sub(" ", subject)
    return asked if content_words(asked) else subject


def asks_for_number(question: str) -> bool:
    """Return whether a number may answer a question."""
    return _NEEDS_NUMBER.search(question) is not None or _ASKS_FOR_NUMBER.search(question) is not None


def needs_number(question: str) -> bool:
    """Return whether only a number answers a question."""
    asks = _NEEDS_NUMBER.search(question) is not None and not _ASKS_WHAT_SETS.match(asking_clause(question))
    return asks and is_one_question(question) and not is_yes_or_no(question)


def asks_how_many(question: str) -> bool:
    """Return whether a question asks to count something."""
    return _HOW_MANY.search(question) is not None


def is_one_question(task: str) -> bool:
    """Return whether a task is one question. In a longer one, words such as "which" may mean anything."""
    return len(task) <= MAX_QUESTION_CHARS and "\n" not in task.strip()


def is_plain_question(task: str) -> bool:
    """Return whether a task is one question and nothing else, not an order to build something."""
    *told, _ = sentences_of(task)
    return all(map(_STATEMENT.match, told)) and _PLAIN_QUESTION.match(asking_clause(task)) is not None


def asked_for(question: str) -> list[str]:
    """Return what is asked for, such as "status" in "which status does the server send?".

    An answer need not have all words of one such text.
    """
    if asks_how(question):
        return []
    asked = (
        " ".join(word for word in content_words(text) if word.lower() not in _MEASURES)
        for text in _ASKED_FOR.findall(question)
    )
    return list(filter(None, asked))


def question_parts(task: str) -> tuple[str, ...]:
    """Return the parts of a question that asks two things, else the question itself.

    What is told before the question belongs to both parts: "When it stops, what is sent, and how often?"
    """
    whole, asked = task.strip(), asking_clause(task)
    found = _SECOND_PART.search(asked)
    if found is None or "\n" in whole:
        return (task,)
    first, second = asked[: found.start()].rstrip(" ,;"), found["second"].strip()
    if not content_words(first) or _IS_UNFINISHED.search(first):  # "where and how", "before and after which"
        return (task,)
    told = whole.removesuffix(asked)
    is_clause = told.rstrip().endswith(",")
    return (
        f"{told}{first}?",
        f"{told}{second}" if is_clause else f"{told}{second[:1].upper()}{second[1:]}",
    )


def refers_back(part: str) -> bool:
    """Return whether the second part of a question is about the answer to the first."""
    words = len(content_words(part))
    return words < MIN_OWN_WORDS or (words == MIN_OWN_WORDS and _REFERS.search(part) is not None)


def question_in(task: str) -> str:
    """Return what a task asks for: the feature of a workflow's handoff, else the task itself.

    It has no space around it.
    """
    whole = task.strip()
    start = whole.find(HANDOFF_BLOCK)
    if start < 0:
        return whole
    try:
        request = first_json_value(whole[start + len(HANDOFF_BLOCK) - 1 :])
    except NotJson:
        return whole
    context = request.get("context") if isinstance(request, Mapping) else None
    feature = context.get("feature") if isinstance(context, Mapping) else None
    return (isinstance(feature, str) and feature.strip()) or whole
