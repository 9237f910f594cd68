"""Finds what a question is about and what it asks for: its content words, and the clause that asks."""

from __future__ import annotations

import re

from retinue.codebase import parse_question, stem

MAX_WORDS = 8
"""How many words of a question count."""
MIN_FORM_CHARS = 4
"""A shorter beginning of a word is in too many other words."""

_NAME_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")
_KEYWORDS = frozenset(
    (
        "and",
        "con",
        "def",
        "for",
        "int",
        "let",
        "mod",
        "new",
        "not",
        "pre",
        "pub",
        "res",
        "ret",
        "str",
        "the",
        "var",
    )
)
"""Short words of code that begin many others."""
_YES_OR_NO = re.compile(
    r"^\W*(?:please\s+\w+\s+)?(?:whether\b"
    r"|(?!\w+ you\b)(?:is|are|can|could|does|do|did|has|have|will|would)\s)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!])\s+(?=[A-Z])")
_ASKING_WORD = (
    "(?:where|how|what|which|who|whose|why|is|are|can|could|does|do|did|has|have|will|would"
    "|in which|after (?:how|what))"
)
_LEADING_CLAUSE = re.compile(
    rf"^\W*(?!{_ASKING_WORD}\b)[^?\n]{{1,200}}?,\s+(?={_ASKING_WORD}\b)", re.IGNORECASE
)
"""What stands before the words that ask, such as "If a key is missing, "."""
WHAT_HAPPENS = "what (?:happens|becomes|changes|does|do|did|is done|are done)"
"""Begins a question for an explanation, as a regular expression."""
_AWAIT = re.compile(r"\bawait\b")
"""A keyword that contains a word of questions."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[/+-][A-Za-z0-9_]+)*")
NAME_LIKE = re.compile(r"[A-Z].*[A-Z]|[a-z].*[A-Z]|\d|_")
"""What looks like a name in code."""
_OPENS_WORD = " \t\r\n\"'`()[]*-"
"""What may stand between the end of a sentence and the first word of the next one."""
_GENERIC_WORDS = """
a an the this that these those is are was were be been being am do does did done has have had can could will
would should may might must there here it its they them their he she you your we our i me my who whom whose
which what when where why how of to in on at by for from with without into onto over under about after
before between during through as if or and but not no nor so than then too very also any some all each every
other another such only same own more most many much few less least one two code codebase project library
package program repository repo file files folder module class function method helper helpers utility
utilities feature features functionality mechanism facility support supports supported option options way
ways place places thing things kind kinds type types something anything built builtin implement implements
implemented implementation define defines defined exist exists existing contain contains contained provide
provides provided offer offers offered include includes included handle handles handled use uses used using
make makes made get gets give gives given need needs possible able automatically tell find show list lists
user users people person developer developers client clients default defaults setting settings value values
number numbers maximum minimum limit name names decided decide allowed
inside outside nobody somebody anybody everybody itself different rest single content contents keep keeps kept
big bigger biggest small smaller short shorter shortest long longer longest later earlier always although
still further whole told going once someone stay stays twice often wrote whether several
part parts really together take takes taken took bring brings notice notices usual goes went gone
rather away along beforehand afterwards come comes came mine yours
"""
_GENERIC = frozenset(map(stem, _GENERIC_WORDS.split())) | frozenset(_GENERIC_WORDS.split())
_EVERYDAY_WORDS = """
able accept accidentally accomplish accordingly achieve across additional afraid afterward afterwards ago
agree ahead ain alike almost alone already alright alternatively altogether amazing annoy answer anyhow
anymore anyone anyway anyways anywhere apart apparently appear apply appreciate appropriate approximately
arise around arrive aside assume assuming avoid aware back bad badly barely basically became become becomes
before began begin begun behave behind believe belong besides best better beyond bother briefly broke broken
brought calculate care carefully carry cause certain certainly chance change choice choose chose chosen
clearly clever closely colleague completely compute confuse consider consist constantly cope correctly couple
course coworker create curious currently deal dealt deep deeply definitely deliberately depending despite
determine die died differ difficult directly dozen due dying easier easily easy effectively eight either else
elsewhere end enjoy enough ensure entire entirely especially even eventually ever everyone everything
everywhere exactly except expect explicitly extremely fairly fall fallen familiar feed feel felt finally fine
finish five forever forget forgot forgotten fortunately four frankly frequently friend fully gave generally
good great grew grow grown guess half hand handful handy happen happy hard hardly hear heard heavily held
hence hold honestly hope hopefully huge hung idea ideally imagine immediately impossible improve indeed
instantly intend intention intentionally involve just kept knew know known lack large largely last lastly
lately lie likely likewise literally little lot love mainly manage manually matter maybe meant meanwhile
measure meet mention merely mess met middle mightn mind mistake mistakenly moment month moreover morning
mostly mustn namely naturally nearly necessarily necessary needn neither never nevertheless newly nice nine
none normal normally nothing now nowadays nowhere obvious obviously occasionally occur oddly off okay old
onto originally ought ourselves overall own pain particular particularly partly perfect perfectly perform
perhaps pick plenty possibility possibly prefer press pretty previously primarily probable probably promptly
proper properly prove purpose purposely put putting quickly quite ran rare rarely reach readily realise
realize reason reasonable reasonably recent recently recognise recognize recommend refuse regard regardless
relevant reliable reliably rely remain remember repeatedly require respect respectively roughly said sake saw
seem seen seldom sense separately serious seriously settle seven shan shouldn show shown similar similarly
simple simply simultaneously situation six slight slightly slow slowly solve somehow sometime sometimes
somewhat somewhere soon sooner sorry speak specifically spend spent spoken stand stood strange strangely
stuck stuff successfully sudden suddenly suit suitable suppose supposedly sure surely surprise surprisingly
survive switch talk teammate ten tend thank thankfully thanks themselves thereafter therefore third thought
three throughout till told totally towards treat tried trouble truly truth try turn typical typically
ultimately unable unclear understand understood unexpected unexpectedly unfortunate unfortunately unless
unlike unlikely unsure unusual upfront upon useful useless usually various vary wait weird whatever whenever
whereas wherever whilst whoever win wise wish won wonder work world worry worse wouldn wrong wrongly year
yesterday yet yourself
"""
"""Words with which people tell what they want or what happened, and that name no feature."""


def _forms(word: str) -> tuple[str, ...]:
    """Return a word with its regular forms. Others of its stem, such as "monthly", may name a feature."""
    base, doubled = word.removesuffix("e"), word + word[-1]
    forms = (word, f"{word}s", f"{base}ed", f"{base}ing", f"{doubled}ed", f"{doubled}ing")
    if word.endswith("y"):
        return (*forms, f"{word[:-1]}ies", f"{word[:-1]}ied")
    return (*forms, f"{word}es") if word.endswith(("s", "sh", "ch")) else forms


_EVERYDAY = frozenset(form for word in _EVERYDAY_WORDS.split() for form in _forms(word))


def sentences_of(task: str) -> list[str]:
    """Return the sentences of a task of one paragraph, or the whole task if it has several."""
    return [task] if "\n" in task.strip() else _SENTENCE_END.split(task.strip())


def asking_clause(question: str) -> str:
    """Return the part of a question that asks, without what is told before it."""
    return _LEADING_CLAUSE.sub("", sentences_of(question)[-1], count=1)


def is_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered with yes or no."""
    return _YES_OR_NO.match(asking_clause(question)) is not None


def _search_form(word: str) -> str:
    """Return the stem of a word, or its first letters if the stem is too short to tell anything."""
    short = stem(word.lower())
    return short if len(short) > 3 else word.lower()[:MIN_FORM_CHARS]


def any_form(word: str) -> str:
    """Return a regular expression for a word in any form: `job` for "jobs".

    A short stem counts only as a whole part of a name, because it is in many other words.
    """
    short = stem(word.lower())
    return "|".join([re.escape(_search_form(word)), rf"(?:^|[^a-z]){re.escape(short)}(?:[^a-z]|$)"])


def is_name(word: str, question: str) -> bool:
    """Return whether a word is a name: it has a digit, or a capital letter that begins no sentence."""
    if NAME_LIKE.search(word) or not word[:1].isupper():
        return NAME_LIKE.search(word) is not None
    found = re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", question)
    return any(not _ends_sentence(question[: at.start()]) for at in found)


def _ends_sentence(text: str) -> bool:
    """Return whether the next word begins a sentence."""
    told = text.rstrip(_OPENS_WORD)
    between = text[len(told) :]
    if not told or "\n" in between:
        return True
    is_end = told[-1] in ".!?:;" and not told.endswith(("e.g.", "i.e."))
    return is_end and any(map(str.isspace, between))


def is_everyday(word: str) -> bool:
    """Return whether a word is everyday English: that code lacks it does not say what the code lacks."""
    return all(part in _EVERYDAY or part in _GENERIC for part in re.split(r"[\W_]+", word.lower()))


def content_words(question: str) -> list[str]:
    """Return the words of a question that say what it is about."""
    searched = {word.lower() for word in parse_question(question).word_by_term.values()}
    return [
        word
        for word in dict.fromkeys(_WORD.findall(question))
        if NAME_LIKE.search(word)
        or (
            len(word) > 2
            and any(part in searched for part in re.split(r"[\W_]+", word.lower()))
            and word.lower() not in _GENERIC
            and stem(word.lower()) not in _GENERIC
        )
    ][:MAX_WORDS]


def word_coverage(question: str, text: str, *, abbreviated: bool = False) -> float:
    """Return the share of the question's words that a text contains, in any form; 1 if it has none.

    Names in code are often `abbreviated`: then `parseEnv` contains "environment".
    """
    words, folded = content_words(question), _AWAIT.sub("", text).casefold()
    parts: frozenset[str] = frozenset()
    if abbreviated:
        found = [part.lower() for part in _NAME_PART.findall(text)]
        parts = frozenset((*found, *(part[:-1] for part in found if part.endswith("s") and len(part) > 3)))
        parts -= _KEYWORDS
    matches = (_search_form(word) in folded or any(map(word.lower().startswith, parts)) for word in words)
    return sum(matches) / len(words) if words else 1.0
