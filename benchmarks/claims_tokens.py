"""Checks claims about TypeScript, JavaScript, Go, Rust, Java and C by their tokens, for `benchmarks.claims`.

A lexer and matched brackets, no grammar: it shares nothing with the code that made the claims.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from benchmarks.claims_verdict import Verdict

LANGUAGES = {
    **dict.fromkeys([".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"], "script"),
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    **dict.fromkeys([".c", ".h", ".cc", ".cpp", ".hpp"], "c"),
}
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<raw>r#*"(?s:.*?)"#*|`(?s:(?:\\.|[^`\\])*)`)'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>'(?:\\[^\n]{1,8}|[^'\\\n]{1,80})')"
    r"|(?P<name>[A-Za-z_$][\w$]*!?(?<!!)|[^\W\d]\w*)"
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<mark>::|->|=>|:=|\?\.|\.\.\.|==|!=|<=|>=|&&|\|\||\S)",
    re.DOTALL,
)
_RUST_CHAR = re.compile(r"'(?:\\[^']{1,8}|[^'\\])'")
_KEYWORDS = """
if for while switch catch return function new await typeof sizeof else do in of instanceof throw case func fn
def class struct interface enum match loop yield delete defer go select
"""
_TYPES = "class interface enum struct trait record union impl @interface namespace mod"
_DEFINERS = "type const static let var define typedef function fn func macro_rules"
_NOT_CALLED = frozenset(_KEYWORDS.split())
_JAVA_NAMES = frozenset(["of", "in", "match", "select", "delete", "loop", "go", "def", "func", "fn", "defer"])
"""Keywords of other languages that are ordinary names in Java: `List.of`."""
_TYPE_WORDS = frozenset(_TYPES.split())
_MODIFIERS = frozenset(["public", "private", "protected", "async", "static", "override", "get", "set"])
_STATEMENT_WORDS = frozenset(
    [
        "export",
        "type",
        "interface",
        "class",
        "abstract",
        "const",
        "let",
        "var",
        "function",
        "import",
        "declare",
    ]
)
_VALUE_WORDS = frozenset(_DEFINERS.split()) | _TYPE_WORDS


class Token(NamedTuple):
    text: str
    line: int


class Defined(NamedTuple):
    """A function, from its name to the end of its body."""

    name: str
    line: int
    first: int
    """The position of the name among the tokens."""
    last: int
    """The position of the last token of the body, or of the semicolon."""
    owner: str
    is_static: bool


class TokenFile:
    """The tokens of one file, without comments and strings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.language = LANGUAGES[path.suffix.lower()]
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.tokens = list(_lex(_with_one_branch(self.text), self.language))
        self.lines = [one.line for one in self.tokens]
        self.partner = _match_brackets(self.tokens)

    def on_line(self, line: int, name: str) -> list[int]:
        """Return the positions of a name on a line."""
        first, last = bisect.bisect_left(self.lines, line), bisect.bisect_right(self.lines, line)
        return [at for at in range(first, last) if self.tokens[at].text == name]

    def at(self, position: int) -> str:
        return self.tokens[position].text if 0 <= position < len(self.tokens) else ""

    @cached_property
    def types(self) -> list[tuple[str, int, int, set[str]]]:
        """The types with a body: name, first and last position, and the names of their bases."""
        found: list[tuple[str, int, int, set[str]]] = []
        for at, token in enumerate(self.tokens):
            if token.text == "type" and self.language == "script" and self.at(at + 1)[:1].isalpha():
                end = at
                while end < len(self.tokens) and self.at(end) != ";" and not self._starts_statement(end, at):
                    end = self.partner.get(end, end) if self.at(end) in ("{", "(") else end
                    end += 1
                found.append((self.at(at + 1), at, end, set()))
            if token.text not in _TYPE_WORDS or self.at(at - 1) in (".", "::"):
                continue
            brace, depth = at, 0
            while brace < min(at + 80, len(self.tokens)) and (depth or self.at(brace) not in ("{", ";", ")")):
                depth = max(0, depth + {"<": 1, ">": -1}.get(self.at(brace), 0))
                brace += 1
            if self.at(brace) != "{" or brace not in self.partner:
                continue
            words = [self.at(one) for one in range(at + 1, brace) if re.match(r"[A-Za-z_]", self.at(one))]
            if not words:
                continue
            name = words[0]
            if token.text == "impl":
                head = [self.at(one) for one in range(at + 1, brace)]
                cut = head.index("where") if "where" in head else len(head)
                head = _without_generics(head[:cut])
                named = head[head.index("for") + 1 :] if "for" in head else head
                names = [
                    word for word in named if re.match(r"[A-Za-z_]\w*$", word) and word not in ("dyn", "mut")
                ]
                name = names[-1] if names else name
            found.append((name, at, self.partner[brace], set(words[1:])))
        return found

    def _starts_statement(self, here: int, alias: int) -> bool:
        """Return whether a later line starts a statement, in code without semicolons."""
        starts_line = self.tokens[here].line > self.tokens[here - 1].line
        return here > alias + 1 and starts_line and self.at(here) in _STATEMENT_WORDS

    @cached_property
    def functions(self) -> list[Defined]:
        return [one for at in range(len(self.tokens)) if (one := self._function_at(at)) is not None]

    def _function_at(self, at: int) -> Defined | None:
        """Return the function whose name stands at a position."""
        name, after = self.at(at), self.at(at + 1)
        before = self.at(at - 1)
        named = before in ("fn", "func", ")") or (self.language == "script" and before in _MODIFIERS)
        named = named or (self.language == "java" and name in _JAVA_NAMES)
        if not re.match(r"[A-Za-z_$]", name) or (name in _NOT_CALLED and not named):
            return None
        owner = self.type_around(at)
        if self.language == "go":
            receiver = ""
            if before == ")" and self.at(self.partner.get(at - 1, 0) - 1) == "func":
                inside = [self.at(one) for one in range(self.partner[at - 1] + 1, at - 1)]
                inside = inside[: inside.index("[")] if "[" in inside else inside
                receiver = inside[-1] if inside else ""
            elif before != "func":
                return None
            return self._with_body(at, at + 1, receiver)
        if self.language == "rust":
            return self._with_body(at, at + 1, owner) if before == "fn" else None
        if self.language == "script":
            if before == "function" or (before == "*" and self.at(at - 2) == "function"):
                return self._with_body(at, at + 1, "")
            if after == "=" or (after == ":" and before != "."):
                value = at + 2
                if after == ":" and self.at(value) not in ("async", "function", "("):
                    while value < at + 60 and self.at(value) not in ("=", ";", ",", ")", "}"):
                        value += 1
                    if self.at(value) != "=":
                        return None
                    value += 1
                if self.at(value) == "async":
                    value += 1
                is_arrow = self.at(value + 1) == "=>" or (
                    self.at(value) in ("(", "<")
                    and "=>" in [self.at(one) for one in range(value, self._close(value) + 30)]
                )
                if self.at(value) == "function" or is_arrow:
                    end = self._statement_end(value)
                    return Defined(name, self.tokens[at].line, at, end, owner, False)
                return None
        if after not in ("(", "<") or before in (".", "->", "::", "new", "?."):
            return None
        opening = at + 1
        if after == "<":
            depth = 0
            while opening < at + 60:
                depth += {"<": 1, ">": -1}.get(self.at(opening), 0)
                opening += 1
                if depth == 0:
                    break
            if self.at(opening) != "(":
                return None
        if opening not in self.partner:
            return None
        closing = self.partner[opening]
        follows = closing + 1
        while follows < closing + 40 and (
            re.match(r"[\w$<>\[\].,|&?*]", self.at(follows))
            or self.at(follows) in (":", "=>", "throws")
            or (self.language == "script" and self.at(follows) == "(" and follows > closing + 1)
        ):
            if self.language == "c" and self.at(follows) == ",":
                break
            if self.at(follows) == "(" and follows in self.partner:
                follows = self.partner[follows]
            follows += 1
        is_body = self.at(follows) == "{"
        if self.language == "c":
            if not is_body or (self.depth_at(at) > 0 and not owner):
                return None
            head = at - 1
            while (
                head >= 0
                and self.at(head) not in (";", "}", "{")
                and self.tokens[at].line - self.tokens[head].line < 4
            ):
                head -= 1
            words = [self.at(one) for one in range(head + 1, at)]
            return self._ending(at, follows, "", "static" in words)
        if self.language == "java":
            declared = re.match(r"[\w>\]]", before) and before not in _NOT_CALLED | {"=", "return"}
            if not declared or not (is_body or self.at(follows) == ";") or not owner:
                return None
            return self._ending(at, follows, owner, False)
        if not is_body or not (owner or before in ("{", ",", "}", "async", "get", "set", "*", "static", ";")):
            return None
        return self._ending(at, follows, owner, False)

    def _close(self, at: int) -> int:
        return self.partner.get(at, at + 40)

    def _statement_end(self, at: int) -> int:
        """Return where an expression ends: at the brace of its body, or at the next semicolon or line."""
        here = at
        while here < len(self.tokens) and here < at + 4000:
            text = self.at(here)
            if (text == "{" and self.at(here - 1) in ("=>", ")")) or (
                text == "{" and here in self.partner and here > at + 2
            ):
                return self.partner.get(here, here)
            if text in ("(", "["):
                here = self.partner.get(here, here)
            elif text in (";",) or (text in (")", "}", "]", ",") and here > at):
                return here
            here += 1
        return here

    def _with_body(self, at: int, start: int, owner: str) -> Defined | None:
        here = start
        while here < len(self.tokens) and here < start + 400:
            text = self.at(here)
            if text in ("(", "["):
                here = self.partner.get(here, here)
            elif text == "{":
                if self.language == "go" and self.at(here - 1) in ("interface", "struct"):
                    here = self.partner.get(here, here)
                else:
                    return self._ending(at, here, owner, False)
            elif text == ";" or (
                text == "func" and here > start + 1 and self.language == "go" and self.at(here - 1) == "}"
            ):
                return Defined(self.at(at), self.tokens[at].line, at, here, owner, False)
            here += 1
        return None

    def _ending(self, at: int, brace: int, owner: str, is_static: bool) -> Defined:
        last = self.partner.get(brace, brace)
        return Defined(self.at(at), self.tokens[at].line, at, last, owner, is_static)

    def depth_at(self, at: int) -> int:
        """Return how many braces are open, without `extern "C"`."""
        return self._depths[at]

    @cached_property
    def _depths(self) -> list[int]:
        depth, found = 0, list[int]()
        linkage: set[int] = set()
        for at, token in enumerate(self.tokens):
            if token.text == "{" and self.at(at - 1) == '""' and self.at(at - 2) == "extern":
                linkage |= {at, self.partner.get(at, at)}
            elif token.text == "}" and at not in linkage:
                depth = max(0, depth - 1)
            found.append(depth)
            if token.text == "{" and at not in linkage:
                depth += 1
        return found

    def type_around(self, at: int) -> str:
        around = [one for one in self.types if one[1] < at <= one[2]]
        return max(around, key=lambda one: one[1])[0] if around else ""

    def _start(self, function: Defined) -> int:
        """Return where the declaration of a function starts, with its result type and its receiver."""
        start = function.first
        while start > 0 and function.first - start < 80 and self.at(start - 1) not in (";", "}", "{", ")"):
            start -= 1
        return start

    def function_around(self, at: int, name: str) -> Defined | None:
        """Return the function of a name that contains a position."""
        holding = [one for one in self.functions if one.name == name and self._start(one) <= at <= one.last]
        return max(holding, key=lambda one: one.first, default=None)


class TokenTree:
    """All files of the brace languages below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files: dict[Path, TokenFile] = {}

    def file(self, path: Path) -> TokenFile:
        if path not in self._files:
            self._files[path] = TokenFile(path)
        return self._files[path]

    @cached_property
    def paths(self) -> list[Path]:
        return [
            path
            for path in self.root.rglob("*")
            if path.suffix.lower() in LANGUAGES and path.is_file() and path.stat().st_size < 500_000
        ]

    def holding(self, language: str, word: str) -> Iterator[TokenFile]:
        """Yield the files of a language whose text has a word."""
        for path in self.paths:
            if LANGUAGES[path.suffix.lower()] == language:
                text = path.read_text(encoding="utf-8", errors="replace")
                if re.search(rf"(?<![\w$]){re.escape(word)}(?![\w$])", text):
                    yield self.file(path)

    def family(self, language: str, name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return the names of a type and of everything it extends."""
        names = {name}
        for file in self.holding(language, name) if name else ():
            for own, _, _, others in file.types:
                if own == name:
                    for other in others - seen - names:
                        names |= self.family(language, other, seen | names)
        return names


def check_definition(tree: TokenTree, path: Path, line: int, name: str) -> Verdict:
    """Check that a line defines a name."""
    file = tree.file(path)
    if any(one.name == name and one.line == line for one in file.functions):
        return Verdict("true")
    for at in file.on_line(line, name):
        before, after = file.at(at - 1), file.at(at + 1)
        if before in _VALUE_WORDS or (before == "mut" and file.at(at - 2) == "static") or before == "!":
            return Verdict("true")
        is_member = before in (".", "->") and file.language != "script"
        if after in ("=", ":", ":=") and not is_member:
            return Verdict("true")
        if file.language == "c" and file.at(file.partner.get(at + 1, -2) + 1) == "{":
            return Verdict("true")  # below `#else`, where the braces above do not match
        if file.language == "c" and (before in ("}", "*") or after == ";" or "typedef" in file.text):
            return Verdict("true")
        if file.language == "go" and (after in ("struct", "interface", "func") or _in_group(file, at)):
            return Verdict("true")
        if file.language == "rust" and any(
            one[0] == name and file.tokens[one[1]].line == line for one in file.types
        ):
            return Verdict("true")
    return Verdict("false", f"line {line} does not define {name}")


def calls_in(tree: TokenTree, path: Path, line: int, user: str) -> list[tuple[int, str]] | None:
    """Return the lines and names of all calls in the functions of a name around a line: also in overloads."""
    file = tree.file(path)
    named = [one for one in file.functions if one.name == user]
    owners = {one.owner for one in named if one.line <= line <= file.lines[one.last]}
    if not owners:
        return None
    bodies = [range(one.first + 1, one.last + 1) for one in named if one.owner in owners]
    called = [file.tokens[at] for body in bodies for at in body if _is_call(file, at)]
    return [(one.line, one.text) for one in called]


def _in_group(file: TokenFile, at: int) -> bool:
    """Return whether a name stands in `var (...)`, `const (...)` or `type (...)` of Go."""
    return any(
        opening < at < closing and file.at(opening - 1) in ("var", "const", "type")
        for opening, closing in file.partner.items()
    )


def check_use(
    tree: TokenTree,
    path: Path,
    line: int,
    user: str,
    name: str,
    target: tuple[Path, int] | None,
    *,
    call: bool,
    defined: str = "",
) -> Verdict:
    """Check that `user` uses `name`, as defined at `target`, on a line; as a call if `call` says so.

    `defined` is the name at the definition if it differs.
    """
    file = tree.file(path)
    places = file.on_line(line, name)
    if not places:
        return Verdict("false", f"{name} is not in the code of line {line}")
    verdicts = [_check_place(tree, file, at, user, defined or name, target, call=call) for at in places]
    return min(verdicts, key=lambda one: ("true", "unverifiable", "false").index(one.kind))


def _check_place(
    tree: TokenTree,
    file: TokenFile,
    at: int,
    user: str,
    name: str,
    target: tuple[Path, int] | None,
    *,
    call: bool,
) -> Verdict:
    if any(one.first == at for one in file.functions):
        return Verdict("false", "the line defines it")
    if call and not _is_call(file, at):
        return Verdict("false", f"{name} is not called on the line")
    last = user.rpartition(".")[2]
    around = file.function_around(at, last)
    if user and around is None:
        inside = any(own == last and first <= at <= end for own, first, end, _ in file.types)
        if not inside and last.endswith("]"):
            return Verdict("unverifiable", f"{user} has a computed name")
        if not inside:
            return Verdict("false", f"the line is not inside {user}")
    if target is None:
        return Verdict("true")
    defining = tree.file(target[0])
    definition = next((one for one in defining.functions if (one.line, one.name) == (target[1], name)), None)
    if definition is None:
        if check_definition(tree, *target, name).kind == "false":
            return Verdict("false", f"{target[0].name}:{target[1]} does not define {name}")
        return Verdict("true") if not call else Verdict("unverifiable", "defined, but as no function")
    before = file.at(at - 1)
    if before in (".", "->", "?.", "::") or (before == ">" and file.at(at - 2) == "::"):
        return _check_receiver(tree, file, at, around, defining, definition)
    return _check_plain(tree, file, at, around, defining, definition)


def _is_call(file: TokenFile, at: int) -> bool:
    after = at + 1
    if file.at(after) == "::" and file.at(after + 1) == "<":
        after += 1
    if file.at(after) == "<":
        depth = 0
        while after < at + 60:
            depth += {"<": 1, ">": -1}.get(file.at(after), 0)
            after += 1
            if depth == 0:
                break
    if file.at(after) == "?." or file.at(after) == "!":
        after += 1
    return file.at(after) == "(" and file.at(at - 1) not in ("new", "func", "fn", "function", "class")


def _is_bound(file: TokenFile, around: Defined, name: str) -> bool:
    """Return whether a function binds a name as a parameter or a variable."""
    opening = next((one for one in range(around.first, around.last) if file.at(one) == "("), around.first)
    closing = file.partner.get(opening, opening)
    for at in range(around.first + 1, around.last):
        if file.at(at) != name:
            continue
        before, after = file.at(at - 1), file.at(at + 1)
        if opening < at < closing:
            if file.language == "c" and after in (",", ")", "["):
                return True
            if (
                file.language in ("go", "rust", "script")
                and after in (":", ",", ")")
                and before in ("(", ",", "mut")
            ):
                return True
            if file.language == "go" and before in ("(", ",") and re.match(r"[\w*\[]", after):
                return True
        elif (
            before in ("let", "var", "const", "mut")
            or after == ":="
            or (
                file.language == "c"
                and after in ("=", ";")
                and re.match(r"[A-Za-z_*]", before)
                and before not in ("return", "else", "goto", "case")
            )
            or (file.language == "rust" and before == "|" and after in ("|", ",", ":"))
            or (
                file.language == "script"
                and (after == "=>" or (before in ("(", ",") and _is_arrow_parameter(file, at)))
            )
        ):
            return True
    return False


def _is_arrow_parameter(file: TokenFile, at: int) -> bool:
    here = at
    while here > at - 40 and here >= 0:
        if file.at(here) == "(" and here in file.partner and file.partner[here] > at:
            return file.at(file.partner[here] + 1) == "=>" and file.at(at + 1) in (",", ")", ":", "=")
        here -= 1
    return False


def _check_plain(
    tree: TokenTree, file: TokenFile, at: int, around: Defined | None, defining: TokenFile, target: Defined
) -> Verdict:
    """Check a call without a receiver."""
    name, language = target.name, file.language
    if around is not None and _is_bound(file, around, name) and language != "java":
        nested = defining is file and around.first < target.first < around.last
        return Verdict("true") if nested else Verdict("false", f"{name} is bound locally")
    if language == "java":
        owners = {own for own, first, last, _ in file.types if first < at <= last}
        families = {one for own in owners for one in tree.family("java", own)}
        if target.owner in families or re.search(rf"import\s+static\s+[\w.]+\.(?:{name}|\*)\s*;", file.text):
            return Verdict("true")
        return Verdict("false", f"{target.owner}.{name} is not inherited")
    if target.owner and language != "c":
        return Verdict("false", f"{name} is a method and is called without a receiver")
    if language == "go":
        same = file.path.parent == defining.path.parent
        return Verdict("true") if same else Verdict("false", "another package")
    if language == "c":
        if defining is file:
            return Verdict("true")
        if any(one.name == name for one in file.functions):
            return Verdict("false", "the file has its own definition")
        others = [
            one
            for other in tree.holding("c", name)
            for one in other.functions
            if one.name == name and not one.is_static and "test" not in str(other.path.relative_to(tree.root))
        ]
        if target.is_static and defining.path.name not in file.text:
            return Verdict("false", f"{name} is static in another file")
        return Verdict("true") if len(others) <= 1 else Verdict("false", f"{len(others)} definitions")
    if defining is file:
        return Verdict("true")
    if any(one.name == name and not one.owner and file.depth_at(one.first) == 0 for one in file.functions):
        return Verdict("false", "the file has its own definition")
    if language == "script":
        return _check_script_import(tree, file, file.at(at), defining)
    stem = (
        defining.path.parent.name
        if defining.path.name in ("mod.rs", "lib.rs", "main.rs")
        else defining.path.stem
    )
    uses = re.findall(r"\buse\s+([^;]+);", file.text)
    if any(
        re.search(rf"\b{name}\b", one) and (stem in one or "crate" in one or "super" in one) for one in uses
    ):
        return Verdict("true")
    if any("*" in one for one in uses):
        return Verdict("true")
    return Verdict("false", f"no use declaration names {name}")


def _check_script_import(
    tree: TokenTree, file: TokenFile, name: str, defining: TokenFile, hops: int = 5
) -> Verdict:
    """Check that the imports of a script lead to the definition."""
    pattern = r"(?:import|export)\s+(?:type\s+)?([^;'\"]*?)\s*from\s*['\"]([^'\"]+)['\"]"
    required = r"(?:const|let|var)\s+([^=;]+?)\s*=\s*require\(\s*['\"]([^'\"]+)['\"]\s*\)"
    for what, source in [*re.findall(pattern, file.text), *re.findall(required, file.text)]:
        if "*" not in what and not re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", what):
            continue
        if not source.startswith("."):
            continue
        renamed = re.search(rf"([\w$]+)\s+as\s+{re.escape(name)}(?![\w$])", what)
        for path in _script_files(file.path.parent / source):
            if path == defining.path:
                return Verdict("true")
            if hops and path.suffix.lower() in LANGUAGES:
                wanted = renamed[1] if renamed else name
                inner = _check_script_import(tree, tree.file(path), wanted, defining, hops - 1)
                if inner.kind == "true":
                    return inner
    return Verdict("false", f"no import leads from {file.path.name} to {defining.path.name}")


def _script_files(base: Path) -> list[Path]:
    base = Path(str(base.resolve()))
    ends = [".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs"]
    stems = [base, base.with_suffix("")] if base.suffix in (".js", ".mjs", ".cjs", ".ts") else [base]
    paths = [
        base,
        *(Path(f"{one}{end}") for one in stems for end in ends),
        *(base / f"index{end}" for end in ends),
    ]
    return [one for one in paths if one.is_file()]


def _check_receiver(
    tree: TokenTree, file: TokenFile, at: int, around: Defined | None, defining: TokenFile, target: Defined
) -> Verdict:
    """Check a call on a receiver: an object, a type or a module."""
    receiver = file.at(at - 2)
    language = file.language
    own = around.owner if around is not None and around.owner else file.type_around(at)
    if receiver in ("this", "self", "Self", "super") and file.at(at - 3) not in (".", "->", "::"):
        if receiver in ("super", "self") and not target.owner and language == "rust":
            return Verdict("true")
        family = tree.family(language, own)
        if target.owner in family:
            return Verdict("true")
        return Verdict("false", f"{own} has no {target.owner}.{target.name}")
    if not target.owner:
        folder = defining.path.parent.name or tree.root.name
        stems = {defining.path.stem, folder}
        if (
            receiver in stems
            or re.search(rf"(?:import|use|as)\b[^;\n]*\b{re.escape(receiver)}\b", file.text)
            or re.search(rf"[\"'/]{re.escape(receiver)}[\"']|\b{re.escape(receiver)}\s+\"", file.text)
            or re.search(rf"\b{re.escape(receiver)}\s*=\s*require", file.text)
        ):
            return Verdict("true")
        return Verdict("false", f"{receiver} is no imported module")
    types = _types_of(file, receiver, around, at)
    if receiver == target.owner or receiver in tree.family(language, target.owner):
        return Verdict("true")
    related = {one for name in types for one in tree.family(language, name)}
    if target.owner in related:
        return Verdict("true")
    known = [
        one
        for one in types
        if any(own == one for other in tree.holding(language, one) for own, *_ in other.types)
    ]
    if known and len(known) == len(types):
        return Verdict("false", f"the receiver is {', '.join(sorted(types))}, not {target.owner}")
    return Verdict("unverifiable", f"the type of {receiver} is unknown")


def _types_of(file: TokenFile, receiver: str, around: Defined | None, at: int) -> set[str]:
    """Return the type names that declarations give to a variable or a field."""
    ranges = [(around.first, around.last)] if around is not None else []
    for first, last in [*ranges, (0, len(file.tokens))]:
        found: set[str] = set()
        for here in range(first, last):
            if file.at(here) != receiver or here == at - 2:
                continue
            before, after = file.at(here - 1), file.at(here + 1)
            if after == ":" and file.language in ("script", "rust"):
                found |= _names_from(file, here + 2)
            elif (
                file.language == "go"
                and re.match(r"[*\w\[]", after)
                and before in ("(", ",", "var", "{", ";", "}")
            ) or (
                file.language == "go"
                and re.match(r"[*A-Z]", after)
                and file.tokens[here].line != file.tokens[here - 1].line
            ):
                found |= _names_from(file, here + 1)
            elif (after in (":=", "=") and file.at(here + 2) in ("&", "new")) or file.at(here + 3) == "{":
                found |= _names_from(file, here + 2)
            elif after in ("=", ":=") and file.at(here + 3) == "::":
                found |= {file.at(here + 2)}
            elif (
                file.language in ("java", "c")
                and re.match(r"[A-Za-z_>\]*]", before)
                and before not in _NOT_CALLED
            ):
                back = here - 1
                while (back > 0 and file.at(back) in (">", "]", "[", "*", ",", "?")) or file.at(back + 1) in (
                    ">",
                    ",",
                ):
                    back -= 1
                if re.match(r"[A-Z]", file.at(back)):
                    found |= {file.at(back)}
        if found:
            return found
    return set()


def _names_from(file: TokenFile, at: int) -> set[str]:
    """Return the first type name from a position on."""
    for here in range(at, at + 6):
        text = file.at(here)
        if re.match(r"[A-Za-z_]", text) and text not in ("mut", "dyn", "new", "const", "readonly"):
            if file.at(here + 1) in (".", "::") and re.match(r"[A-Za-z_]", file.at(here + 2)):
                continue
            return {text}
    return set()


def _without_generics(words: list[str]) -> list[str]:
    depth, kept = 0, list[str]()
    for word in words:
        depth += {"<": 1}.get(word, 0)
        if depth == 0:
            kept.append(word)
        depth -= {">": 1}.get(word, 0)
    return kept


def _match_brackets(tokens: list[Token]) -> dict[int, int]:
    """Return the position of each closing bracket by that of its opening one, and the reverse for `(`."""
    pairs: dict[int, int] = {}
    stacks: dict[str, list[int]] = {")": [], "]": [], "}": []}
    opens = {"(": ")", "[": "]", "{": "}"}
    for at, token in enumerate(tokens):
        if token.text in opens:
            stacks[opens[token.text]].append(at)
        elif stacks.get(token.text):
            opening = stacks[token.text].pop()
            pairs[opening] = at
            if token.text == ")":
                pairs[at] = opening
    return pairs


_OTHER_BRANCH = re.compile(
    r"^[ \t]*#[ \t]*el(?:se|if)\b(?:(?!^[ \t]*#[ \t]*(?:if|endif)).)*", re.DOTALL | re.MULTILINE
)


def _with_one_branch(text: str) -> str:
    """Drop unmatched braces below `#else` inside a function: the branch above has them too."""

    def keep(match: re.Match[str]) -> str:
        code = match[0].partition("\n")[2]
        is_whole = code.count("{") == code.count("}") or re.search(r"^[^\s#]", code, re.MULTILINE) is not None
        return match[0] if is_whole else re.sub(r"[{}]", " ", match[0])

    return _OTHER_BRANCH.sub(keep, text) if "#el" in text else text


def _lex(text: str, language: str, line: int = 1) -> Iterator[Token]:
    at, previous = 0, ""
    while match := _TOKEN.search(text, at):
        line += text.count("\n", at, match.start())
        kind, value = match.lastgroup, match[0]
        end = match.end()
        if kind == "char" and language == "rust" and not _RUST_CHAR.fullmatch(value):
            kind, end = "mark", match.start() + 1  # a lifetime
        if (
            kind == "mark"
            and value == "/"
            and language == "script"
            and previous in ("(", ",", "=", ":", "[", "!", "&&", "||", "?", "{", "}", ";", "return", "")
        ):
            regex = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/\w*").match(text, match.start())
            if regex:
                kind, end = "string", regex.end()
        if kind in ("name", "number", "mark"):
            yield Token(value if end == match.end() else text[match.start() : end], line)
            previous = value
        elif kind in ("string", "raw", "char"):
            yield Token('""', line)
            if language == "script" and value.startswith("`"):
                for inner in re.finditer(r"\$\{((?:[^{}]|\{[^{}]*\})*)\}", value):
                    yield from _lex(inner[1], language, line + value.count("\n", 0, inner.start(1)))
            previous = '""'
        line += text.count("\n", match.start(), end)
        at = end
