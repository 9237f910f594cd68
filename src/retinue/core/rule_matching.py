"""Compares tool calls with permission rules, by what the tool will do: commands, files and addresses.

A rule allows a call only if it surely matches all of it. A rule denies a call if it may match any of it.
Knows nothing of who is asked when no rule matches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from retinue.core.file_pattern import DeniedFiles, FileReadings, join_path, matches_surely, read_path
from retinue.core.permission import PermissionRule, ToolRequest, Verdict
from retinue.core.programs_run import (
    FINDERS,
    INERT,
    plain_commands,
    possible_commands,
    program_name,
    runs_another_program,
    searches_current_folder,
)
from retinue.core.shell_command import SPLIT, UNKNOWN, UnclearCommand, parse_command
from retinue.core.tool_arguments import EDITING_TOOLS, READING_TOOLS, TOOL_ARGUMENTS, SubjectKind
from retinue.core.web_address import certain_host, is_host_in, possible_hosts

_WIDENING = (":*", " *")
"""Endings that make a rule match every command with the same beginning."""
_DOMAIN = "domain:"
_FILE_TOOLS = EDITING_TOOLS | READING_TOOLS
_FOLDER_CHANGES = frozenset({"cd", "pushd", "popd", "chdir"})
_INSIDE_WORD = re.compile(r"[=@:,]")
"""Characters after which a path may begin inside an argument: `--file=path`, `@path`, `host:path`."""
_INSIDE_SCRIPT = re.compile(r"[^\w./~+-]+")
"""What may stand before and behind a path in a script: `awk '{getline < "path"}'`."""
_EVALUATED_SUBSCRIPT = re.compile(r"\w\[[^\]]*(?:\$\(|`)")
"""The subscript of an array in quotes. Bash runs the command in it: `[ -v 'a[$(rm x)]' ]`."""
MAX_MENTIONED_PATHS = 500


def decide_by_rules(asked: ToolRequest, allow: Sequence[str], deny: Sequence[str]) -> Verdict | None:
    """Decide a call by the rules of an agent. `deny` wins. Returns None if the call must be asked for.

    A rule that may deny the call denies it. Rules allow a call only if it is certain what the call does, and
    they match all of it.
    """
    denying = [PermissionRule.parse(text) for text in deny]
    for text, rule in zip(deny, denying, strict=True):
        if may_match(rule, asked):
            return Verdict(False, f"the agent's rule {text} denies it")
    if not allow:
        return None
    if (exact := exact_rule(asked)) is not None and exact in allow:
        return Verdict(True, f"the agent's rule {exact} allows it")
    if any(may_reach(rule, asked) for rule in denying):
        return None
    allowing = [PermissionRule.parse(text) for text in allow]
    if not is_allowed(asked, allowing):
        return None
    for text, rule in zip(allow, allowing, strict=True):
        if is_allowed(asked, [rule]):
            return Verdict(True, f"the agent's rule {text} allows it")
    return Verdict(True, "the agent's rules allow all parts of it")


def is_allowed(asked: ToolRequest, rules: Sequence[PermissionRule]) -> bool:
    """Whether the rules surely match everything that the call does."""
    covering = [rule for rule in rules if _covers(rule, asked.tool)]
    if asked.suspects or not covering:
        return False
    if any(rule.subject is None or (rule.subject == "*" and _kind(asked) == "command") for rule in covering):
        return True
    wanted = [rule.subject or "" for rule in covering]
    match _kind(asked):
        case "command":
            return all(text in wanted or _are_commands_allowed(text, wanted) for text in asked.targets)
        case "file" | "folder":
            readings = [read_path(target, asked.folder) for target in asked.targets]
            return all(
                any(matches_surely(pattern, each, asked.folder) for pattern in wanted) for each in readings
            )
        case "address":
            return all(_is_address_allowed(url, wanted) for url in asked.targets)
        case "name":
            return all(target in wanted for target in asked.targets)
        case None:
            return False


def may_match(rule: PermissionRule, asked: ToolRequest) -> bool:
    """Whether the rule may match anything that the call does."""
    if rule.subject is None:
        return _may_cover(rule, asked.tool)
    texts = [text for text in (*asked.targets, *asked.suspects) if text]
    if rule.tool in _FILE_TOOLS and _kind(asked) == "command":
        denied = DeniedFiles.of(rule.subject, asked.folder)
        return any(denied.may_include(path) for text in texts for path in _named_paths(text, asked.folder))
    if not _may_cover(rule, asked.tool):
        return False
    match _kind(asked):
        case "command":
            return any(_may_command_match(rule.subject, text, asked.folder) for text in texts)
        case "file" | "folder":
            denied = DeniedFiles.of(rule.subject, asked.folder)
            return any(denied.may_include(read_path(text, asked.folder)) for text in texts)
        case "address":
            return any(_may_address_match(rule.subject, text) for text in texts)
        case "name":
            return any(_may_name_match(rule.subject, text) for text in texts)
        case None:
            return True  # the rule is about arguments that Retinue does not know


def may_reach(rule: PermissionRule, asked: ToolRequest) -> bool:
    """Whether the call might do something that the rule denies. Such a call is a question.

    A tool searches a folder above the files that the rule denies. Or a command is not understood, changes its
    folder, has arguments that the shell fills in, or passes what is denied to a program that may have a
    language of its own: `awk`, `sed`, `git -c`.
    """
    if rule.subject is None:
        return False
    kind = _kind(asked)
    if rule.tool not in _FILE_TOOLS:
        return (
            kind == "command"
            and _may_cover(rule, asked.tool)
            and any(not _is_understood(text) or _may_pass_on(rule.subject, text) for text in asked.targets)
        )
    denied = DeniedFiles.of(rule.subject, asked.folder)
    if kind == "folder" and _may_cover(rule, asked.tool):
        return any(denied.may_be_in(read_path(target, asked.folder)) for target in asked.targets)
    reads = rule.tool in READING_TOOLS
    return kind == "command" and any(
        _may_command_reach(denied, text, asked.folder, reads=reads) for text in asked.targets
    )


def _may_command_reach(denied: DeniedFiles, text: str, folder: str, *, reads: bool) -> bool:
    try:
        commands = possible_commands(text)
    except UnclearCommand:
        return True
    if any(
        program_name(words[0]) in _FOLDER_CHANGES or any(UNKNOWN in word or SPLIT in word for word in words)
        for words in commands
    ) or any(denied.may_be_below(path) for path in _named_paths(text, folder)):
        return True
    if reads and any(map(searches_current_folder, commands)) and denied.may_be_below(read_path(".", folder)):
        return True
    mentioned = _mentioned_paths(commands)
    return len(mentioned) > MAX_MENTIONED_PATHS or any(
        denied.may_include(read_path(path, folder)) for path in mentioned
    )


def _mentioned_paths(commands: Sequence[tuple[str, ...]]) -> set[str]:
    """The parts of arguments that may be paths in a script; in sed, a letter may stand before them."""
    parts = {part for words in commands for word in words[1:] for part in _INSIDE_SCRIPT.split(word) if part}
    return parts | {part[1:] for part in parts if len(part) > 1}


def _may_pass_on(rule: str, text: str) -> bool:
    """Whether a program may run what the rule describes because an argument mentions it.

    A mention in the arguments of a program that runs nothing, such as `grep`, does not count.
    """
    if _EVALUATED_SUBSCRIPT.search(text):
        return True
    for wanted, _ in _denied_commands(rule):
        names = [program_name(wanted[0]), *(word for word in wanted[1:] if not word.startswith("-"))]
        line = parse_command(text)
        if line.is_plain and not any(command.assigns for command in line.commands):
            commands = [command.words for command in line.commands if command.words]
            texts = [" ".join(words[1:]) for words in commands if program_name(words[0]) not in INERT]
            attached = (word[2:] for words in commands for word in words[1:] if re.match("-[^-]", word))
            texts += (word for word in attached if word)
        else:
            texts = [text, re.sub(r"[\\'\"]", "", text)]
        if any(all(_mentions(each, name) for name in names) for each in texts):
            return True
    return False


def _mentions(text: str, name: str) -> bool:
    """Whether a text contains a word, as the whole name of something."""
    if UNKNOWN in name or SPLIT in name:
        return True
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text, re.IGNORECASE) is not None


def _is_understood(command: str) -> bool:
    try:
        possible_commands(command)
    except UnclearCommand:
        return False
    return True


def exact_rule(asked: ToolRequest) -> str | None:
    """The rule that allows exactly this call; None if every such rule would match other calls, too."""
    if asked.suspects or asked.also or ("(" in asked.tool or not asked.tool.strip()):
        return None
    subject = asked.subject
    match _kind(asked):
        case None:
            return None if subject else asked.tool
        case "command":
            wildcards = any(SPLIT in word for word in _rule_words(subject)[0])
            is_wider = subject.endswith("*") or wildcards or not subject.strip()
        case "file" | "folder":
            found = _exact_pattern(asked)
            is_wider, subject = found is None, found or ""
        case "address":
            is_wider = certain_host(subject) is None or "*" in subject
        case "name":
            is_wider = "*" in subject or not subject
    return None if is_wider else f"{asked.tool}({subject})"


def _exact_pattern(asked: ToolRequest) -> str | None:
    """The pattern of the one file that the call acts on; None if it is not certain which one it is."""
    readings = read_path(asked.subject, asked.folder)
    written = os.path.normpath(join_path(asked.folder, asked.subject)).replace(os.sep, "/")
    folder = asked.folder.rstrip("/") + "/"
    pattern = written.removeprefix(folder) if written.startswith(folder) else f"/{written}"
    if written == asked.folder:
        pattern = "./"
    if any(letter in pattern for letter in "*?[\\"):
        return None
    return pattern if matches_surely(pattern, readings, asked.folder) else None


def _kind(asked: ToolRequest) -> SubjectKind | None:
    shape = TOOL_ARGUMENTS.get(asked.tool)
    return None if shape is None else shape.kind


def _covers(rule: PermissionRule, tool: str) -> bool:
    """Whether the rule is about the tool. `Edit(x)` covers all tools that edit, `Read(x)` all that read."""
    if fnmatchcase(tool, rule.tool) or (rule.tool.startswith("mcp__") and tool.startswith(f"{rule.tool}__")):
        return True
    if rule.subject is None:
        return False
    return (rule.tool == "Edit" and tool in EDITING_TOOLS) or (rule.tool == "Read" and tool in READING_TOOLS)


def _may_cover(rule: PermissionRule, tool: str) -> bool:
    """Whether the rule may be about the tool, by another name or in other letters."""
    name, wanted = tool.casefold(), rule.tool.casefold()
    if fnmatchcase(name, wanted) or (wanted.startswith("mcp__") and name.startswith(f"{wanted}__")):
        return True
    families = (EDITING_TOOLS, READING_TOOLS, frozenset({"Task", "Agent"}))
    return any(rule.tool in family and tool in family for family in families) and (
        rule.subject is not None or "Task" in (rule.tool, tool)
    )


def _are_commands_allowed(text: str, wanted: Sequence[str]) -> bool:
    """Whether each command of a command line is matched by one of the rules."""
    try:
        commands = plain_commands(text)
    except UnclearCommand:
        return False
    return bool(commands) and all(
        any(_begins_like(words, rule) for rule in wanted) for words in commands or ()
    )


def _begins_like(words: tuple[str, ...], rule: str) -> bool:
    """Whether a command is the one of the rule. A `*` in the rule stands for any text, also several words."""
    wanted, is_prefix = _rule_words(rule)
    if not wanted or words[0] != wanted[0]:
        return False
    places = {1}
    for name in wanted[1:]:
        if name == SPLIT:
            places = set(range(min(places), len(words) + 1))
        else:
            places = {place + 1 for place in places if place < len(words) and _is_like(words[place], name)}
        if not places:
            return False
    if not is_prefix and len(words) not in places:
        return False
    has_wildcard = is_prefix or any(SPLIT in name for name in wanted)
    names_inner = (
        len(wanted) > 1 and wanted[1][:1] not in ("-", SPLIT) and program_name(wanted[0]) not in FINDERS
    )
    return not has_wildcard or names_inner or not runs_another_program(words)


def _is_like(word: str, name: str) -> bool:
    if SPLIT not in name:
        return word == name
    if ".." in word.split("/"):
        return False  # src/../x does not begin like src/*
    return re.fullmatch(".*".join(map(re.escape, name.split(SPLIT))), word, re.DOTALL) is not None


@lru_cache(maxsize=1024)
def _rule_words(rule: str) -> tuple[tuple[str, ...], bool]:
    """The words of a rule for one plain command, and whether others may follow; no words for other rules.

    The words have `SPLIT` for each `*`. A rule with other wildcards matches only the command that repeats it.
    """
    beginning = rule
    for ending in _WIDENING:
        beginning = beginning.removesuffix(ending)
    try:
        commands = plain_commands(beginning)
    except UnclearCommand:
        return (), False
    if not commands or len(commands) != 1 or any(letter in beginning for letter in "?[{~"):
        return (), False
    words = parse_command(beginning).commands[0].words
    if SPLIT in words[0] or any(UNKNOWN in word for word in words):
        return (), False
    return words, beginning != rule or words[-1].endswith(SPLIT)


def _may_command_match(rule: str, text: str, folder: str) -> bool:
    """Whether a command line may run what the rule describes."""
    if rule == text:
        return True
    wanted = _denied_commands(rule)
    try:
        commands = possible_commands(text)
    except UnclearCommand:
        bare = re.sub(r"[\\'\"\s]", "", text).casefold()
        return any(program_name(words[0]).strip(UNKNOWN + SPLIT) in bare for words, _ in wanted)
    return all(
        any(_may_be_command(words, each, is_prefix, folder) for each in commands)
        for words, is_prefix in wanted
    )


@lru_cache(maxsize=1024)
def _denied_commands(rule: str) -> tuple[tuple[tuple[str, ...], bool], ...]:
    """The commands that a rule describes, each with whether other words may follow."""
    beginning = rule
    for ending in _WIDENING:
        beginning = beginning.removesuffix(ending)
    is_prefix = beginning != rule or rule.endswith("*")
    try:
        commands = [command.words for command in parse_command(beginning).commands if command.words]
    except UnclearCommand:
        commands = [tuple(beginning.split())] if beginning.split() else []
    return tuple((words, is_prefix) for words in commands) or (((SPLIT,), True),)


def _may_be_command(wanted: tuple[str, ...], words: tuple[str, ...], is_prefix: bool, folder: str) -> bool:
    """Whether a command may be the wanted one, with its options in any order and form."""
    if not _may_be_program(wanted[0], words[0], folder):
        return False
    if SPLIT in words[0] or wanted[0] == SPLIT:
        return True
    wanted_names = [word for word in wanted[1:] if not word.startswith("-") or word == "-"]
    wanted_options = [word for word in wanted[1:] if word.startswith("-") and word != "-"]
    return all(_may_have_option(option, words) for option in wanted_options) and _may_have_names(
        wanted_names, words[1:], is_prefix
    )


def _may_be_program(wanted: str, word: str, folder: str) -> bool:
    if SPLIT in word:
        return True
    names = {program_name(word)}
    if "/" in word and folder and UNKNOWN not in word:
        names |= {program_name(path) for path in read_path(word, folder).possible}
    target = program_name(wanted)
    if any(_may_be_equal(target, name) for name in names):
        return True
    *unknown, end = word.casefold().split(UNKNOWN)
    return bool(unknown) and (target.endswith(end) or end.endswith(f"/{target}"))


def _may_have_option(option: str, words: tuple[str, ...]) -> bool:
    """Whether a command may have an option, as a part of others or in its long form."""
    others = [word for word in words[1:] if word.startswith("-") or UNKNOWN in word or SPLIT in word]
    if any(word.startswith("--") or UNKNOWN in word or SPLIT in word for word in others):
        return True
    if option.startswith("--"):
        return bool(others)
    letters = "".join(others).casefold()
    return all(letter in letters for letter in option[1:].casefold())


def _may_have_names(wanted: Sequence[str], words: tuple[str, ...], is_prefix: bool) -> bool:
    """Whether the words may begin with the wanted ones, with options and their values between them."""
    places = {0}
    for name in wanted:
        if SPLIT in name:
            return True
        reached: set[int] = set()
        for place in _after_options(places, words):
            if place < len(words):
                if SPLIT in words[place]:
                    return True
                if _may_be_equal(name, words[place]) or _is_same_path(name, words[place]):
                    reached.add(place + 1)
        if not reached:
            return False
        places = reached
    return is_prefix or len(words) in _after_options(places, words)


def _after_options(places: set[int], words: tuple[str, ...]) -> set[int]:
    """The places that are reached by skipping options, each with or without a value."""
    reached, waiting = set[int](), list(places)
    while waiting:
        place = waiting.pop()
        if place not in reached and place <= len(words):
            reached.add(place)
            if place < len(words) and words[place][:1] in ("-", UNKNOWN, SPLIT):
                waiting += [place + 1, place + 2]
    return reached


def _may_be_equal(one: str, other: str) -> bool:
    """Whether two words may be the same, whatever their unknown parts are."""
    parts = [re.split(f"[{UNKNOWN}{SPLIT}]", word.casefold()) for word in (one, other)]
    if len(parts[0]) == len(parts[1]) == 1:
        return parts[0] == parts[1]
    known, unknown = sorted(parts, key=len)
    if len(known) == 1:
        return re.fullmatch(".*".join(map(re.escape, unknown)), known[0], re.DOTALL) is not None
    (one_begin, one_end), (other_begin, other_end) = ((each[0], each[-1]) for each in parts)
    return (one_begin.startswith(other_begin) or other_begin.startswith(one_begin)) and (
        one_end.endswith(other_end) or other_end.endswith(one_end)
    )


def _is_same_path(one: str, other: str) -> bool:
    """Whether two words name the same path, or the second begins with the first, which ends with a slash."""
    if one.endswith("/") and other.casefold().startswith(one.casefold()):
        return True
    looks_like_path = "/" in one or one in (".", "..", "~")
    return looks_like_path and os.path.normpath(one).lstrip("/") == os.path.normpath(other).lstrip("/")


def _named_paths(text: str, folder: str) -> Iterator[FileReadings]:
    """Yield the paths that the words of a command line may name, as a whole or in a part of them."""
    try:
        words = {word for words in possible_commands(text) for word in words}
        for command in parse_command(text).commands:
            words |= {*command.files, *command.inputs}
    except UnclearCommand:
        return
    spellings: set[str] = set()
    for word in words:
        spellings |= {word, *_INSIDE_WORD.split(word), *re.findall(r"file:/+([^/].*)", word)}
        spellings |= {*re.findall(r"file://[^/]+(/.*)", word)}
        if word.startswith("-"):
            spellings.add(word[2:])
    for spelling in spellings:
        if spelling and UNKNOWN not in spelling and SPLIT not in spelling and len(spelling) < 4_096:
            yield read_path(spelling, folder)


def _is_address_allowed(url: str, wanted: Sequence[str]) -> bool:
    host = certain_host(url)
    return host is not None and any(
        url == rule or (rule.startswith(_DOMAIN) and is_host_in(host, rule.removeprefix(_DOMAIN)))
        for rule in wanted
    )


def _may_address_match(rule: str, text: str) -> bool:
    hosts = possible_hosts(text)
    if rule.startswith(_DOMAIN):
        domain = rule.removeprefix(_DOMAIN)
        return any(is_host_in(host, domain) for host in hosts)
    wanted = possible_hosts(rule)
    if wanted.isdisjoint(hosts):
        return "*" in rule and certain_host(rule) is None
    if "*" in rule or certain_host(text) is None or certain_host(rule) is None:
        return True
    return _address_path(rule) == _address_path(text)


def _address_path(url: str) -> str:
    return os.path.normpath("/" + unquote(urlsplit(url).path).casefold().strip("/"))


def _may_name_match(rule: str, text: str) -> bool:
    return fnmatchcase(" ".join(text.casefold().split()), " ".join(rule.casefold().split()))
