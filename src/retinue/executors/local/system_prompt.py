"""What an agent is told beside its task: its file's body and the rules of the loop.

The same for every run of an agent, to the letter: no date, no folder, no id. So the server's cache of the
prefix holds from run to run.
"""

from __future__ import annotations

from retinue.core import estimate_tokens

MAX_TOKENS = 600
MAX_BODY = 1_600
"""Characters of an agent's own text."""
CUT = "\n[the rest of these instructions was cut]"

RULES = (
    "You work alone on one task; nobody reads along. Look things up with the tools and never guess what a "
    "file says. Name places as path:line, and only lines that you have seen. When you know enough, or "
    "nothing more can be found, answer in plain text without calling a tool. If you did not find it, say so."
)
RULES_WITHOUT_TOOLS = (
    "You work alone on one task; nobody reads along. Answer with what the task tells you. If that is not "
    "enough, say what is missing."
)


def system_prompt(body: str, *, tools: bool) -> str:
    rules = RULES if tools else RULES_WITHOUT_TOOLS
    body = body.strip()
    if not body:
        return rules
    length = min(len(body), MAX_BODY)
    while True:
        shown = body if length == len(body) else body[:length].rstrip() + CUT
        whole = f"{shown}\n\n{rules}"
        if estimate_tokens(whole) <= MAX_TOKENS:
            return whole
        length = length * 9 // 10  # text that is dense in tokens, such as Chinese or encoded data
