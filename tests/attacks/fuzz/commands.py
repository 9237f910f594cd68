"""Commands: no rewriting of a denied command is allowed, and no command line breaks the parser."""

from __future__ import annotations

from random import Random

from retinue.core import ToolRequest, decide_by_rules, exact_rule
from retinue.core.programs_run import plain_commands, possible_commands
from retinue.core.shell_command import UnclearCommand
from tests.attacks.rewriting import PROGRAM, WRAPPING_PROGRAMS, rewrite_command

NAME = "commands"
SHARE = 3
FOLDER = "/nowhere/bin"
ALLOW = [f"Bash({program}:*)" for program in WRAPPING_PROGRAMS]
LETTERS = "abrmx/.~*?[](){}'\"\\$`;&|<>!# \t\n-=:@0"


def run_case(random: Random) -> None:
    if random.random() < 0.5:
        command = rewrite_command(random, FOLDER)
        asked = ToolRequest("Bash", command, folder="/nowhere")
        for allow, deny in ((["Bash"], [f"Bash({PROGRAM}:*)"]), (ALLOW, [])):
            verdict = decide_by_rules(asked, allow, deny)
            assert verdict is None or not verdict.allowed, command
        return
    command = "".join(random.choices(LETTERS, k=random.randrange(40)))
    asked = ToolRequest("Bash", command, folder="/nowhere")
    try:
        plain, possible = plain_commands(command), possible_commands(command)
    except UnclearCommand:
        assert decide_by_rules(asked, ["Bash(a:*)", "Bash(r:*)"], []) is None, command
        return
    for words in plain or ():
        assert any(words == other[-len(words) :] for other in possible), command
    if (rule := exact_rule(asked)) is not None:
        verdict = decide_by_rules(asked, [rule], [])
        assert verdict is not None, command
        assert verdict.allowed, command
        other = ToolRequest("Bash", f"{command}\n{PROGRAM} x", folder="/nowhere")
        verdict = decide_by_rules(other, [rule], [])
        assert verdict is None or not verdict.allowed, command
