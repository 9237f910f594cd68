"""What configures something: option, type, default, where it is used and how it is set, in any language."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import RoleResult, Stop
from retinue.research.locator import locate
from retinue.research.options import explain_options
from retinue.research.role_context import RoleContext
from tests.research.conftest import ContextIn, write


def options_for(context: RoleContext) -> RoleResult:
    return explain_options(context, locate(context, 8, Stop()).places, Stop())


CASES = [
    (
        "constant of a settings module",
        {
            "shop/settings.py": "SESSION_COOKIE_AGE = 1209600\nDEBUG_MODE = False\n",
            "shop/session.py": "from shop import settings\n\n\ndef expires(now):\n"
            "    return now + settings.SESSION_COOKIE_AGE\n",
        },
        "Which setting controls the age of the session cookie?",
        [
            "shop/settings.py:1: `SESSION_COOKIE_AGE` (default 1209600), a "
            "constant: `SESSION_COOKIE_AGE = 1209600`",
            "shop/session.py:5: `SESSION_COOKIE_AGE` is used in `expires`: `return "
            "now + settings.SESSION_COOKIE_AGE`",
        ],
    ),
    (
        "argument parser",
        {
            "cli.py": "def parse(parser):\n    parser.add_argument(\n"
            "        '--max-redirects',\n        type=int,\n"
            "        default=5,\n        help='Redirects that are followed.',\n    )\n\n\ndef fetch(args):\n"
            "    return args.max_redirects\n"
        },
        "How do I limit the maximum number of redirects?",
        [
            "cli.py:3: `--max-redirects` (type int, default 5), a command-line option: `'--max-redirects',`",
            "cli.py:11: `max-redirects` is used in `fetch`: `return args.max_redirects`",
        ],
    ),
    (
        "environment variable",
        {"log.py": "import os\n\n\ndef level():\n    return os.environ.get('SHOP_LOG_LEVEL', 'info')\n"},
        "which environment variable sets the log level?",
        [
            "log.py:5: `SHOP_LOG_LEVEL`, an environment variable: `return "
            "os.environ.get('SHOP_LOG_LEVEL', 'info')`"
        ],
    ),
    (
        "interface field",
        {
            "link.ts": "export interface LinkOptions {\n  // Longest URL of a request.\n"
            "  maxURLLength?: number;\n}\n\n"
            "export function link(opts: LinkOptions) {\n"
            "  const limit = opts.maxURLLength ?? Infinity;\n  return limit;\n}\n"
        },
        "What configures the maximum URL length?",
        [
            "link.ts:3: `maxURLLength` (type number, default Infinity), a field of "
            "`LinkOptions`: `maxURLLength?: number;`",
            "link.ts:7: `maxURLLength` is used in `link`: `const limit = opts.maxURLLength ?? Infinity;`",
        ],
    ),
    (
        "field of a type alias",
        {
            "link.ts": "export type LinkOptions = Base & {\n  maxURLLength?: number;\n};\n\n"
            "export function link(opts: LinkOptions) {\n  return opts.maxURLLength;\n}\n",
        },
        "What configures the maximum URL length?",
        ["link.ts:2: `maxURLLength` (type number), a field of `LinkOptions`: `maxURLLength?: number;`"],
    ),
    (
        "struct field",
        {
            "command.go": "package cmd\n\ntype Command struct {\n"
            "\t// SilenceUsage hides the usage when an error occurs.\n"
            "\tSilenceUsage bool\n}\n\nfunc (c *Command) Run() {\n"
            "\tif !c.SilenceUsage {\n\t\tshow(c)\n\t}\n}\n"
        },
        "Which setting hides the usage on errors?",
        [
            "command.go:5: `SilenceUsage` (type bool), a field of `Command`: `SilenceUsage bool`",
            "command.go:9: `SilenceUsage` is used in `Command.Run`: `if !c.SilenceUsage {`",
        ],
    ),
    (
        "option table",
        {
            "getparam.c": "static const struct LongShort aliases[] = {\n"
            '  {"limit-rate", ARG_STRG, C_LIMIT_RATE},\n'
            '  {"location", ARG_BOOL, C_LOCATION},\n};\n\nint opt(int cmd)\n{\n'
            "  switch(cmd) {\n  case C_LIMIT_RATE:\n"
            "    return 1;\n  }\n  return 0;\n}\n"
        },
        "Which option limits the rate of a transfer?",
        [
            "getparam.c:2: `limit-rate` (type ARG_STRG), a row of an option table: "
            '`{"limit-rate", ARG_STRG, C_LIMIT_RATE},`'
        ],
    ),
    (
        "builder",
        {
            "ParserBuilder.java": "class ParserBuilder {\n  boolean lenientNumbers = false;\n\n"
            "  public ParserBuilder setLenientNumbers(boolean on) {\n"
            "    this.lenientNumbers = on;\n    return this;\n  }\n}\n"
        },
        "How do I enable lenient numbers?",
        [
            "ParserBuilder.java:2: `lenientNumbers` (type boolean, default false), "
            "a field of `ParserBuilder`:",
            "is set by `ParserBuilder.setLenientNumbers`",
        ],
    ),
]


@pytest.mark.parametrize(
    ("files", "question", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_option_is_named_with_its_default_and_where_it_is_used(
    tmp_path: Path, context_in: ContextIn, files: dict[str, str], question: str, expected: list[str]
) -> None:
    context = context_in(write(tmp_path / "configured", files), question)
    assert context.brief.intent == "options"
    result = options_for(context)
    for part in expected:
        assert any(part in finding for finding in result.key_findings), result.key_findings


def test_option_comes_first_in_the_places_too(tmp_path: Path, context_in: ContextIn) -> None:
    context = context_in(write(tmp_path / "configured", CASES[0][1]), CASES[0][2])
    assert str(locate(context, 8, Stop()).references[0]) == "shop/settings.py:1"


def test_option_is_found_by_its_help_text(tmp_path: Path, context_in: ContextIn) -> None:
    code = (
        "def add(group):\n    group.addoption(\n        '--maxfail',\n"
        "        help='Exit after the first failures of a session.',\n    )\n"
    )
    context = context_in(
        write(tmp_path / "helped", {"main.py": code}), "Which option exits after some failures?"
    )
    assert options_for(context).summary == "1 option: `--maxfail`."


def test_local_variables_are_no_options(tmp_path: Path, context_in: ContextIn) -> None:
    code = "def wait(seconds):\n    retry_limit: int = 3\n    return retry_limit * seconds\n"
    context = context_in(
        write(tmp_path / "local", {"options.py": code}), "Which option sets the retry limit?"
    )
    assert options_for(context).summary.startswith("Not found")
