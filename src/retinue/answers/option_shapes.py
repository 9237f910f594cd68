"""The shapes of options in any language: what a line that defines an option looks like, and its parts.

Command-line registrations, option tables, environment variables, constants, fields of option types, keys of
settings, methods of builders. Knows nothing of questions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.codebase import FileEntry
from retinue.core import clip

NOT_SEARCHED = (
    *("!*_test.*", "!test_*", "!*.test.*", "!*.spec.*", "!*.md", "!*.rst", "!*.txt", "!*.lock", "!*.po"),
    *("!**/tests/**", "!**/test/**", "!**/testing/**", "!**/docs/**", "!**/doc/**", "!**/node_modules/**"),
)
"""Globs that leave out files with no options of the project itself."""
HOLDER = re.compile(
    r"option|setting|config|conf\b|cfg|opts|param|props|args|argument|flags|polic|builder|default|preference"
    r"|command|init|getopt|cli\b",
    re.IGNORECASE,
)
QUOTED = r"[\"'`]"
_REGISTERED = re.compile(
    r"\b(?:add_?(?:argument|option|ini|flag|parameter)|[Oo]ption|[Aa]rg(?:ument)?(?:::new)?|flag"
    r"|(?:String|Int|Bool|Duration|Float|Uint|Count)\d*(?:Slice|Array)?(?:Var)?P?|DEFINE_\w+|define|on|long)"
    rf"\s*[(=]\s*(?:&?[\w.]+\s*,\s*)?{QUOTED}(?P<name>[^\"'`]+){QUOTED}(?P<rest>.*)"
)
_DECLARED = re.compile(
    r"\b\w*(?:Config|Option|Setting|Flag|Param)\w*\s*\(\s*(?:[\w.]+\s*,\s*)?"
    rf"{QUOTED}(?P<name>[\w.-]+){QUOTED}(?P<rest>.*)"
)
_CHECKED = re.compile(
    r"\b\w*(?:opt|option|flag|arg)\w*\s*\((?:[^\"(),]{1,30},\s*){1,3}\"(?P<name>-{0,2}[a-z][\w-]+)\"(?P<rest>.*)"
)
_USAGE = re.compile(
    r"^\s*[\"'`*|]?\s*(?:-\w,? )?(?P<name>--[a-z][\w-]+)(?:[ =][<\[]?[\w|]+[>\]]?)?"
    r"(?:\s{2,}|\t)(?P<rest>[A-Za-z].*)$"
)
FLAG_LINE = re.compile(
    rf"^\s*(?:{QUOTED}-\w{QUOTED},\s*)?{QUOTED}(?P<name>--[\w-]+){QUOTED}\s*,?(?P<rest>.*)$"
)
_TABLE_ROW = re.compile(r"^\s*\{\s*\"(?P<name>[\w.-]+)\"\s*,(?P<rest>.*)$")
_VARIABLE = re.compile(
    rf"(?:environ(?:\.get)?|getenv|env::var|process\.env|\bENV|os\.Getenv|LookupEnv)\s*[(\[.]\s*{QUOTED}?"
    r"(?P<name>[A-Z][A-Z0-9_]{2,})(?![\"'\]]+\s*=[^=])(?P<rest>.*)"
)
_CONSTANT = re.compile(
    r"^\s*(?!(?:case|if|return|else|elif|while)\b)(?:#\s*define\s+|(?:[\w<>&']+:?\s+){0,5})"
    r"(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]{4,})\s*(?::\s*(?P<type>[^=]+?))?"
    r"(?:\s*=(?!=)\s*|(?<=\w)\s+(?=[\"'(\d-]))(?P<default>[^;]+?);?\s*$"
)
_FIELD = re.compile(
    r"^\s+(?:(?:public|private|protected|readonly|pub|final|static|var|let|val)(?:\(\w+\))?\s+)*"
    r"(?P<name>\w+)\??\s*:\s*(?P<type>[^=;{]+?)(?:\s*=\s*(?P<default>[^;]+?))?[;,]?\s*$"
)
_GO_FIELD = re.compile(r"^\s+(?P<name>[A-Z]\w*)\s+(?P<type>[\w.*\[\]()]+)\s*(?:`.*`)?\s*(?://.*)?$")
_C_FIELD = re.compile(
    r"^\s+(?:(?:private|protected|public|final|static|const|unsigned|volatile)\s+)*(?P<type>[\w<>\[\].]+\s?\*?)\s+\*?"
    r"(?P<name>\w+)(?:\s*=\s*(?P<default>[^;]+))?;"
)
_KEY = re.compile(rf"^\s*{QUOTED}(?P<name>[\w.-]+){QUOTED}\s*:\s*(?P<default>.+?),?\s*$")
_ASSIGNED = re.compile(
    r"^\s*(?:(?:self|this|cls)\.)?(?P<name>[a-z]\w*)\s*(?::\s*(?P<type>[^=]+?))?\s*=\s*(?P<default>[^=].*)$"
)
OWN_FIELD = re.compile(r"\s*(?:self|this)\.\w+\s*(?::[^=]+)?=")
_NAMED = re.compile(rf"^\s+name\s*=\s*{QUOTED}(?P<name>[a-z][\w.-]*){QUOTED}\s*,?\s*$")
CLASS_DEFAULT = re.compile(r"^\s+default\s*=\s*(?P<value>.+?)\s*,?\s*$", re.MULTILINE)
"""The default in the body of a class that declares a setting, beside its name."""
_RUBY_SETTING = re.compile(r"^\s*set :(?P<name>\w+), (?P<default>.+?)\s*$")
_BUILDER = re.compile(
    r"^\s+(?:public\s+\w*Builder\w*(?:<[^>]*>)?\s+|pub fn\s+|func \(\w+ \*?\w+\)\s+)"
    r"(?P<name>\w+)\s*\((?P<rest>.*)"
)
_FUNCTION = re.compile(r"^func (?P<name>\w+)\((?P<rest>[^)]*)\)\s*\w*(?:Option|Opt|Setting|Config)\w*\s*\{")
_SETTER = re.compile(
    r"^\s+(?:(?:public|pub(?:\(\w+\))?|static|final|async|export)\s+)*(?:(?:void|fn|fun|func|def|[\w<>.]+)\s+)?"
    r"(?P<name>set_?[A-Za-z]\w*)\s*\((?P<rest>[^)]+.*\{\s*|.*:\s*)$"
)
SETTING_CLASS = "class of a setting"
"""The shape of a class with the name and the default of a setting: `name = "timeout"`, `default = 30`."""
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("command-line option", _REGISTERED),
    ("command-line option", _CHECKED),
    ("command-line option", _USAGE),
    ("command-line option", FLAG_LINE),
    ("setting", _DECLARED),
    ("setting", _RUBY_SETTING),
    (SETTING_CLASS, _NAMED),
    ("row of an option table", _TABLE_ROW),
    ("environment variable", _VARIABLE),
    ("constant", _CONSTANT),
    ("field", _FIELD),
    ("field", _GO_FIELD),
    ("field", _C_FIELD),
    ("key", _KEY),
    ("method", _BUILDER),
    ("function", _FUNCTION),
    ("method", _SETTER),
    ("variable", _ASSIGNED),
)
DESCRIBED = frozenset(("command-line option", "setting", "row of an option table", "environment variable"))
"""Shapes whose help text follows the name."""
BOUND = re.compile(
    r"""&?\b[a-z_]\w*(?:\.|->)(?P<field>\w+)\b(?!\s*[(.])|\bdest\s*=\s*["'](?P<dest>\w+)["']"""
)
"""The variable that an option is read into: `server.aof_fsync`, `&opts.color`, `dest="color"`."""
HELD = frozenset(("field", "key", "variable", "method"))
"""Shapes that count only inside a type or a file that holds options."""
HOLDING = HELD | {"parameter"}
"""Shapes that belong to a type or a function."""
WORTH = {"variable": 0.7, "method": 0.8, "parameter": 0.85, "constant": 0.85, "field": 0.95}
"""How much a shape looks like an option; 1 if it is not listed."""
DEFAULT = re.compile(
    r"@default\s+(?P<tag>\S+)|\bdefault(?:_value(?:_t)?|Value)?\s*[=:(]\s*(?P<value>[^,)\n]{1,60})"
    r"|\b[Dd]efaults?(?: is| to|:)\s+(?P<prose>[`'\"]?[^\s`'\"]+"
    r"(?:(?<=\d)\s+[a-z]*(?:seconds?|minutes?|hours?|days?|bytes))?)"
)
CHECK = re.compile(r"\b(?:if|case|elif|when)\b")
SETS = re.compile(r"^\s*(?:\w+(?:\.|->))*(?P<variable>\w+)\s*\|?=\s*(?P<flag>[A-Z][A-Z0-9_]{3,})?\b.*$")
TYPE_ALIAS = re.compile(r"^\s*(?:export\s+)?(?:type|typedef)\b")
COMMENT = re.compile(r"/\*.*?(?:\*/|$)|//.*$|(?<=\s)# .*$")
ATTRIBUTE = re.compile(r"\s*(?:#\[|@[A-Z]\w*\b|\[[A-Z]\w*\()")
"""The first line of an attribute or an annotation: what it says belongs to the line below it."""
TYPE = re.compile(r"\btype\s*=\s*(?P<type>[\w.\"']+)|\b(?P<table>ARG_\w+)")


@dataclass(frozen=True, slots=True)
class Option:
    """A place that defines an option."""

    entry: FileEntry
    line: int
    name: str
    shape: str
    score: float
    type: str = ""
    default: str = ""
    holder: str = ""
    """The type that an option is a field or method of, or the function that it is a parameter of."""
    is_certain: bool = True
    """Whether it has enough words of the question to be the one that is meant."""
    also: tuple[Option, ...] = ()
    """Options of the same name in other files, best first."""
    covered: int = 0
    """How many words of the question the option has in its name, its help text and its holder."""


def parse_option(entry: FileEntry, line: int, text: str) -> Option | None:
    """Return the option that a line defines, or None."""
    start = text.lstrip()
    if start.startswith(("//", "* ", "/*", "# ", "import ", "from ", "use ")):
        return None
    for shape, pattern in _SHAPES:
        if start.startswith("return ") and pattern is not _VARIABLE:
            continue
        found = pattern.search(text)
        if found is None:
            continue
        groups = found.groupdict()
        name = max(groups["name"].replace(",", " ").split() or [""], key=len).strip("<>[]=.")
        if not re.fullmatch(r"-{0,2}[A-Za-z][\w.-]*", name):
            continue
        kind, default = (
            (groups.get("type") or "").strip(),
            COMMENT.sub("", groups.get("default") or "").strip(),
        )
        if default.rstrip(";,").rpartition(".")[2] == name:  # hands a parameter or a setting on
            return None
        return Option(entry, line, name, shape, 0.0, clip(kind, 60), clip(default, 60))
    return None
