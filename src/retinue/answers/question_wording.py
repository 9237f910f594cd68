"""The wordings by which a question is recognised: a table of phrases, each with questions that it is for.

The first row whose phrase is in the first line of a question says what it asks for. A phrase is read
word by word: `a/b` is a choice, `(a)` may be missing, `a*` is the beginning of a word, `...` is up to eight
words, `^` is the beginning of the question, and a word in capitals is one of `SLOTS`. Knows nothing of code.
"""

from __future__ import annotations

import re
from typing import NamedTuple, cast

from retinue.core import Intent

SLOTS = {
    "CALLED": "called/used/invoked/instantiated/referenced/imported/constructed",
    "CALLS": "call/calls/uses/invokes/instantiates/references/imports/constructs/triggers",
    "CHANGED": "add/added/introduc*/chang*/remov*/renam*/delet*/fix*/deprecat*/creat*/wrote",
    "HAS": "have/support/supports/provide/include/offer/handle/contain/allow/come",
    "I": "i/we/you/one",
    "OPTION": "setting*/option/options/flag/flags/switch/parameter*/variable*/config*",
    "SET": "configure/set/change/disable/enable/limit/turn/override/adjust/increase/raise/lower",
    "SHOW": "show/give/find/list/which/what",
    "THING": "file*/function*/method*/class*/module*/package*/struct*/type*/place*/line*/part/code",
    "WRITE": "use/write/add/make/build/implement/create/register/define/extend",
}
TABLE = """
changes  | what/what's (has/was/is) (been) changed/new  | What changed in the parser?; what's new in it?
changes  | recent/latest/last change/changes/commit*    | recent commits to the scheduler
changes  | changed recently/lately/since                | which parsers changed recently?
changes  | when/why was/were/did ... CHANGED            | when was the flag added?; why was it removed?
changes  | who/commit/commits CHANGED                   | who changed the retry policy?
changes  | history of                                   | the history of the scheduler
examples | example*/patterns/samples/usages of/for/how  | give me an example of with_retry
examples | ^ (SHOW) (me) (the/some) existing/similar    | show me existing handlers of a payment
examples | ^ (SHOW) (me) (the/some) examples/example    | show me some examples
examples | implementers/precedents of/for               | implementers of `Reader`
examples | something similar to                         | is there something similar to with_retry?
examples | how do/does/should/can I (usually) WRITE     | How do we usually write a migration?
examples | WRITE my/our/your own/another                | I want to write my own exporter for a format
examples | WRITE one/another (one) (like)               | Show me commands that print, to add one like them
callers  | who/what (else) CALLS                        | Who calls ParseFlags?; what uses the retry policy?
callers  | which THING CALLS                            | which functions call `send_request`?
callers  | caller*/calls/references of/to               | callers of with_retry; all references to with_retry
callers  | all uses/usages/references/calls/callers     | list all uses of with_retry
callers  | where is/are (else) NAME (THING) (get) CALLED | Where is `RetryPolicy` instantiated?
options  | ^ what configures/sets/limits/controls       | What limits the size of an upload?
options  | ^ which/what/is/are/list/name ... OPTION     | Which option limits it?; Is there a setting for it?
options  | by/the/what default                          | What is the default timeout?
options  | default/defaults to/value/for                | What does bodyLimit default to?
options  | how do/can/could/to I/to SET                 | How do I disable the cache?
options  | can I SET                                    | Can I limit the number of redirects?
options  | how is/are ... configured                    | how is the timeout configured?
exists   | ^ is/are there                               | Is there a YAML reader?; Are there tests of it?
exists   | ^ can/could/does it                          | Can it read XML?; does it resume downloads?
exists   | ^ does/do NAME HAS                           | Does tokio provide barriers?; do we have a limiter?
exists   | ^ can I use/have/get                         | Can I use websockets?
exists   | is it possible                               | is it possible to resume a download?
exists   | ^ is/are ... supported/possible/available    | Is HTTP/3 supported?
where    | ^ where                                      | where are retries handled?
where    | ^ (in) which/what THING                      | in which file are cookies stored?
where    | ^ find/locate/search/look                    | find the code that parses the config
where    | defined/definition                           | the definition of RetryPolicy
how      | how/why/explain/describe/trace/when          | explain how redirects work; why is the cache empty?
how      | what happens/does/do/is/are                  | What does `Session.send` do?
"""


class Wording(NamedTuple):
    """A row of the table: what a phrase shows that a question asks for."""

    intent: Intent
    phrase: str
    pattern: re.Pattern[str]
    questions: tuple[str, ...]
    """Questions that the phrase is for."""


def _compile(phrase: str) -> re.Pattern[str]:
    """Return the regular expression for a phrase of the table."""
    parts: list[str] = []
    for slot in phrase.split():
        if slot == "^":
            parts.append(r"^\W*")
        elif slot == "...":
            parts.append(r"(?:\S+\s+){0,8}?")
        elif slot.strip("()") == "NAME":
            parts.append(r"[`'\"]?[\w.:$>-]+(?:\(\))?[`'\"]?\s+")
        else:
            words = "/".join(SLOTS.get(one, one) for one in slot.strip("()").split("/")).split("/")
            either = "|".join(word.replace("*", r"\w*") for word in words)
            parts.append(rf"(?<!\w)(?:{either})(?![\w-])\W*")
            if slot.startswith("("):
                parts[-1] = f"(?:{parts[-1]})?"
    return re.compile("".join(parts), re.IGNORECASE)


def _read_table() -> tuple[Wording, ...]:
    rows = ([cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines())
    return tuple(
        Wording(cast("Intent", intent), phrase, _compile(phrase), tuple(questions.split("; ")))
        for intent, phrase, questions in rows
    )


WORDINGS = _read_table()
