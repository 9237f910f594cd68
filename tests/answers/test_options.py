"""What configures something: option, type, default, where it is used and how it is set, in any language."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.answers.locator import locate
from retinue.answers.options import explain_options
from retinue.answers.role_context import RoleContext
from retinue.core import RoleResult, Stop
from tests.answers.conftest import ContextIn, write


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
        "class of a setting",
        {
            "app/config.py": 'class Bind(Setting):\n    desc = """\\\n        Where.\n        """\n\n\n'
            "class LimitRequestLine(Setting):\n    name = 'limit_request_line'\n"
            "    type = int\n    default = 4094\n    desc = 'The maximum size of the line.'\n",
            "app/http.py": "def read(cfg):\n    return cfg.limit_request_line\n",
        },
        "Which setting limits the line of a request?",
        [
            "app/config.py:8: `limit_request_line` (type int, default 4094), a class of a setting: "
            "`name = 'limit_request_line'`",
            "app/http.py:2: `limit_request_line` is used in `read`: `return cfg.limit_request_line`",
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
    (
        "attribute over a field",
        {
            "arguments.rs": 'pub struct Arguments {\n  #[arg(\n    long,\n    env = "APP_PREVIEW",\n'
            '    help = "Print planned deployments instead of performing them",\n  )]\n'
            "  pub(crate) preview: bool,\n}\n",
            "run.rs": "fn run(config: &Arguments) {\n  if config.preview {\n    show();\n  }\n}\n",
        },
        "Which flag prints the planned deployments?",
        [
            "arguments.rs:7: `preview` (type bool), a field of `Arguments`: `pub(crate) preview: bool,`",
            "run.rs:2: `preview` is used in `run`: `if config.preview {`",
        ],
    ),
    (
        "function that returns an option",
        {
            "options.go": "package app\n\n// WithRate sets how many messages are sent in a second.\n"
            "func WithRate(rate int) ProgramOption {\n\treturn func(p *Program) { p.rate = rate }\n}\n"
        },
        "Which option sets the rate of messages?",
        ["options.go:4: `WithRate`, a function: `func WithRate(rate int) ProgramOption {`"],
    ),
    (
        "parameter with a default",
        {
            "server.py": "class Server:\n    def __init__(\n        self,\n"
            "        max_body_size: int = 1000,\n    ) -> None:\n"
            "        self.max_body_size = max_body_size\n\n"
            "    def read(self, body):\n        return body[: self.max_body_size]\n"
        },
        "Which setting limits the size of a body?",
        [
            "server.py:4: `max_body_size` (type int, default 1000), a parameter of `Server.__init__`: "
            "`max_body_size: int = 1000,`",
            "server.py:9: `max_body_size` is used in `Server.read`:",
        ],
    ),
    (
        "usage text and the flag that its check sets",
        {
            "main.c": "static void usage(void) {\n  puts(\n"
            '    "  -S, --sort-keys      sort the keys of each object;\\n"\n  );\n}\n\n'
            "int main(int argc, char **argv) {\n  int options = 0;\n"
            "  if (isoption(&text, 'S', \"sort-keys\", is_short)) {\n    options |= SORTED_OUTPUT;\n  }\n"
            "  if (options & SORTED_OUTPUT) sort();\n  return 0;\n}\n"
        },
        "Which option sorts the keys of objects?",
        [
            "`--sort-keys`, a command-line option",
            "main.c:12: `SORTED_OUTPUT` is used in `main`: `if (options & SORTED_OUTPUT) sort();`",
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
    assert context.question.intent == "options"
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


def test_default_is_told_without_the_text_around_it(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: neither the bracket after a default nor a comment behind it belongs to the value."""
    files = {
        "lib/main.rb": "op.on('-q', 'turn on quiet mode (default is off)') { config[:quiet] = true }\n",
        "lib/base.rb": "class Base\n  set :views, 'app/views'\nend\n",
        "src/settings.py": "class Settings:\n    load_limit = 30  # seconds\n",
        "src/args.rs": "pub struct Args {\n    /// Time to stop. The default is 10 seconds.\n"
        '    #[arg(long, default_value = "10s")]\n    pub stop_timeout: TimeSpan,\n\n'
        "    /// Time to start. The default is 50 milliseconds.\n    pub start_timeout: TimeSpan,\n}\n",
    }
    asked = {
        "Which option turns on quiet mode?": "(default off),",
        "Which setting is the folder of views?": "`views` (default 'app/views'), a setting",
        "What is the default load limit?": "`load_limit` (default 30),",
        "What is the default of stop_timeout?": '`stop_timeout` (type TimeSpan, default "10s"),',
        "What is the default of start_timeout?": "(type TimeSpan, default 50 milliseconds),",
    }
    root = write(tmp_path / "defaults", files)
    for question, shown in asked.items():
        found = options_for(context_in(root, question)).key_findings
        assert any(shown in one for one in found), (question, found)


def test_local_variables_are_no_options(tmp_path: Path, context_in: ContextIn) -> None:
    code = "def wait(seconds):\n    retry_limit: int = 3\n    return retry_limit * seconds\n"
    context = context_in(
        write(tmp_path / "local", {"options.py": code}), "Which option sets the retry limit?"
    )
    assert options_for(context).summary.startswith("No option is named with the words of the question.")


def test_measure_is_chosen_for_a_question_of_how_often(tmp_path: Path, context_in: ContextIn) -> None:
    """The option is the interval, not the object that is checked; its type and comment have the topic."""
    code = (
        "package proxy\n\ntype Handler struct {\n\tHealthChecks *HealthChecks\n}\n\n"
        "type HealthChecks struct {\n\t// The path of the health check.\n\tPath string\n\n"
        "\t// How frequently the health check runs.\n\tInterval Duration\n}\n"
    )
    context = context_in(
        write(tmp_path / "proxy", {"proxy.go": code}), "What sets how often the health is checked?"
    )
    assert options_for(context).key_findings[0].startswith("proxy.go:12: `Interval`")


def test_option_with_more_words_of_the_question_comes_first(tmp_path: Path, context_in: ContextIn) -> None:
    code = "RETRY_COUNT = 3\nRETRY_DELAY = 5\nRETRY_DELAY_LIMIT = 60\n"
    context = context_in(
        write(tmp_path / "ranked", {"settings.py": code}), "Which setting is the limit of the retry delay?"
    )
    assert options_for(context).key_findings[0].startswith("settings.py:3: `RETRY_DELAY_LIMIT`")


def test_weak_option_is_named_with_a_doubt(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: one word of many does not make it the option that is meant."""
    context = context_in(
        write(tmp_path / "weak", {"settings.py": "SCREEN_TITLE = 'x'\n"}),
        "Which option limits the refresh rate of the screen buffer?",
    )
    result = options_for(context)
    assert result.summary == "No option is certainly meant. The nearest by its words: `SCREEN_TITLE`."
    assert result.confidence == "low"


def test_options_are_searched_for_once_per_request(tmp_path: Path, context_in: ContextIn) -> None:
    context = context_in(write(tmp_path / "once", CASES[0][1]), CASES[0][2])
    places = locate(context, 8, Stop()).places
    (tmp_path / "once/shop/settings.py").write_text("OTHER = 1\nSESSION_COOKIE_AGE = 1209600\n")
    assert not explain_options(context, places, Stop()).key_findings[0].startswith("shop/settings.py:2")


def test_variable_that_an_option_is_read_into_leads_to_its_readers(
    tmp_path: Path, context_in: ContextIn
) -> None:
    files = {
        "config.c": "standardConfig configs[] = {\n"
        '  createEnumConfig("appendfsync", NULL, MODIFIABLE, fsync_enum, server.aof_fsync, EVERYSEC),\n};\n',
        "aof.c": "void flush_log(int force) {\n  if (server.aof_fsync == ALWAYS) {\n    sync();\n  }\n}\n",
    }
    result = options_for(context_in(write(tmp_path / "store", files), "What sets appendfsync?"))
    assert "aof.c:2: `aof_fsync` is used in `flush_log`: `if (server.aof_fsync == ALWAYS) {`" in (
        result.key_findings
    )


def test_local_variable_below_a_signature_with_throws_is_no_parameter(
    tmp_path: Path, context_in: ContextIn
) -> None:
    text = (
        "class StampOptions {\n  Stamp readStamp(Reader in) throws IOException {\n"
        "    Date stampDate = in.next();\n    return wrap(stampDate);\n  }\n}\n"
    )
    result = options_for(
        context_in(write(tmp_path / "shop", {"StampOptions.java": text}), "what configures stampDate?")
    )
    assert not [finding for finding in result.key_findings if "a parameter of" in finding]


def test_question_without_an_option_is_told_how_it_works(tmp_path: Path, context_in: ContextIn) -> None:
    text = "def choose_carrier(parcel):\n    return weigh_parcel(1)\n\n\ndef weigh_parcel(parcel): ...\n"
    root = write(tmp_path / "shop", {"carrier.py": text})
    result = options_for(context_in(root, "what configures which carrier a parcel gets?"))
    assert result.summary.startswith(
        "No option is named with the words of the question. Probably `choose_carrier`"
    )
    assert any("`choose_carrier` calls `weigh_parcel`" in finding for finding in result.key_findings)


def test_option_with_one_of_two_words_is_not_certain(tmp_path: Path, context_in: ContextIn) -> None:
    code = (
        "class Executor {\n  protected int queryStack;\n\n  int depth() {\n    return queryStack;\n  }\n}\n"
    )
    context = context_in(
        write(tmp_path / "db", {"Executor.java": code}), "Which setting cancels a slow query?"
    )
    assert options_for(context).summary.startswith("No option is certainly meant.")


def test_option_whose_name_is_made_of_the_words_of_the_question_comes_first(
    tmp_path: Path, context_in: ContextIn
) -> None:
    names = ("max_requests", "limit_request_fields", "limit_request_line", "limit_line_buffers")
    code = "".join(f"{name.upper()} = {number}\n" for number, name in enumerate(names))
    asked = "Which setting limits how long the first line of a request may be?"
    result = options_for(context_in(write(tmp_path / "app", {"settings.py": code}), asked))
    assert result.key_findings[0].startswith("settings.py:3: `LIMIT_REQUEST_LINE`")


def test_text_is_no_answer_to_a_question_of_how_many(tmp_path: Path, context_in: ContextIn) -> None:
    write(tmp_path, {"task.go": "package task\n\ntype Task struct {\n\tRun string\n\tDir string\n}\n"})
    found = options_for(context_in(tmp_path, "What limits how many tasks run at once?"))
    assert found.summary == "No option is certainly meant. The nearest by its words: `Run`."


def test_field_of_an_error_is_no_option(tmp_path: Path, context_in: ContextIn) -> None:
    code = "package task\n\ntype TooManyTasksError struct {\n\tMaximumTasks int\n}\n\n"
    write(tmp_path, {"task.go": f"{code}type Config struct {{\n\tMaximumTasksRun int\n}}\n"})
    found = options_for(context_in(tmp_path, "What is the maximum number of tasks?"))
    assert "TooManyTasksError" not in str(found.key_findings)
    assert "`MaximumTasksRun`" in found.summary
