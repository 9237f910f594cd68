"""An error message or a trace leads to the line that raises it, before anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retinue.answers.error_origins import explain_error
from retinue.answers.locator import locate
from retinue.answers.role_context import RoleContext
from retinue.core import RoleResult, Stop
from retinue.service import ResearchRequest, research_codebase
from tests.answers.conftest import ContextFor, ContextIn, service_for, write


def explained(context: RoleContext) -> RoleResult:
    return explain_error(context, locate(context, 8, Stop()).places, Stop())


MESSAGES = [
    (
        "fixtures.py",
        "def lookup(name, known):\n    if name not in known:\n"
        "        raise LookupError(f\"fixture '{name}' not found\")\n"
        "    return known[name]\n",
        "What raises \"fixture 'db_session' not found\"?",
        "fixtures.py:3 in `lookup`: `raise LookupError(f\"fixture '{name}' not found\")`, reached by "
        "fixtures.py:2: `if name not in known:`",
    ),
    (
        "open.go",
        'package shop\n\nfunc open(path string) error {\n\tif path == "" {\n'
        '\t\treturn fmt.Errorf("cannot open shop %q", path)\n\t}\n'
        "\treturn nil\n}\n",
        'why do I get "cannot open shop /tmp/x"?',
        'open.go:5 in `open`: `return fmt.Errorf("cannot open shop %q", path)`, reached by open.go:4',
    ),
    (
        "open.ts",
        "export function open(port: number) {\n  if (port < 0) {\n"
        "    throw new Error(`port ${port} is out of range`);\n  }\n}\n",
        "RangeError: port -5 is out of range",
        "open.ts:3 in `open`: `throw new Error(`port ${port} is out of range`);`",
    ),
    (
        "Open.java",
        "class Open {\n  void open(int port) {\n    if (port < 0) {\n"
        '      throw new IllegalStateException("Port is negative: " + port);\n'
        "    }\n  }\n}\n",
        'What throws "Port is negative: -5"?',
        "Open.java:4 in `Open.open`:",
    ),
    (
        "open.c",
        "int open_port(int port)\n{\n  if(port < 0)\n"
        '    failf("bad port number %d in URL", port);\n  return port;\n}\n',
        'where does the error "bad port number 99999 in URL" come from?',
        'open.c:4 in `open_port`: `failf("bad port number %d in URL", port);`, reached by open.c:3',
    ),
    (
        "open.rs",
        "fn open(port: i32) {\n    if port < 0 {\n"
        '        panic!("port {} must not be negative", port);\n    }\n}\n',
        'what panics with "port -5 must not be negative"?',
        "open.rs:3 in `open`:",
    ),
]


@pytest.mark.parametrize(("name", "code", "question", "expected"), MESSAGES, ids=[one[0] for one in MESSAGES])
def test_message_leads_to_the_line_that_makes_it(
    tmp_path: Path, context_in: ContextIn, name: str, code: str, question: str, expected: str
) -> None:
    test = f"def test_it():\n    assert {question!r}\n"
    context = context_in(write(tmp_path / "failing", {name: code, "tests/test_it.py": test}), question)
    assert context.question.intent == "error"
    assert explained(context).key_findings[0].startswith(expected)
    assert str(locate(context, 8, Stop()).references[0]) == expected.split(" ")[0]


TRACE = """\
charging fails
Traceback (most recent call last):
  File "/usr/lib/python3/threading.py", line 9, in run
    self.target()
  File "/srv/app/src/shop/cli.py", line 5, in main
    charge_card(connect(), 10)
  File "/srv/app/src/shop/payment.py", line 5, in charge_card
    return with_retry(lambda: gateway.charge(amount), RetryPolicy())
TypeError: no such gateway here
"""


def test_trace_leads_to_its_innermost_frame_in_the_project(context_for: ContextFor) -> None:
    context = context_for(TRACE)
    result = explained(context)
    assert [finding.split(" ")[0] for finding in result.key_findings] == [
        "src/shop/payment.py:5",
        "src/shop/cli.py:5",
    ]
    assert str(locate(context, 8, Stop()).references[0]) == "src/shop/payment.py:5"


def test_frame_of_an_older_version_leads_to_its_function(context_for: ContextFor) -> None:
    moved = TRACE.replace('payment.py", line 5', 'payment.py", line 400')
    assert explained(context_for(moved)).key_findings[0].startswith("src/shop/payment.py:4 in `charge_card`")


def test_message_of_a_dependency_is_said_to_be_elsewhere(context_for: ContextFor) -> None:
    result = explained(context_for('what raises "quantum flux capacitor overflow"?'))
    assert "Not found: no line of the code makes the message" in result.summary


def test_line_that_makes_a_message_comes_before_tests_in_the_same_file(
    tmp_path: Path, context_in: ContextIn
) -> None:
    code = (
        "fn check(path: &str) -> Result<()> {\n    if seen(path) {\n"
        '        bail!(anyhow!(\n            "Duplicate file in SUMMARY: {:?}",\n'
        "            path\n        ));\n    }\n    Ok(())\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    #[test]\n    fn duplicates() {\n"
        '        assert_eq!(error_message, r#"Duplicate file in SUMMARY: "./a.md""#);\n    }\n}\n'
    )
    context = context_in(
        write(tmp_path / "book", {"lib.rs": code}), 'Error: Duplicate file in SUMMARY: "b.md"'
    )
    assert explained(context).key_findings[0].startswith("lib.rs:4 in `check`")


def test_line_with_a_part_of_a_message_only_comes_nearest(tmp_path: Path, context_in: ContextIn) -> None:
    """P8: two words in a row do not show that a line makes the message."""
    root = write(tmp_path / "app", {"open.py": "def open_it():\n    fail('the file is missing')\n"})
    result = explained(context_in(root, "error: the file is locked by somebody else"))
    assert result.summary.startswith("No line has the whole message. The nearest: 1 place")
    assert result.confidence == "low"


BARE_MESSAGES = {
    "fixture 'db' not found": "error",
    "could not open option file": "error",
    "shop: could not open option file": "error",
    "could not open option file. Where does this come from?": "error",
    # All words, but not as one message; a docstring; a request; a question.
    "option file could open not": "where",
    "reads an option file": "where",
    "find the file could not open option file": "where",
    "where is an option file opened": "where",
}


@pytest.mark.anyio
@pytest.mark.parametrize("text", BARE_MESSAGES)
async def test_pasted_text_is_a_message_if_the_code_prints_it(
    tmp_path: Path, own_folders: Path, text: str
) -> None:
    """Nothing in the text says that it is an error, so the code decides."""
    code = (
        'def read_options(path):\n    """Reads an option file."""\n'
        '    if not path.exists():\n        fail("could not open option file: %s" % path)\n'
        "def lookup(name):\n    raise LookupError(f\"fixture '{name}' not found\")\n"
    )
    root = write(tmp_path / "app", {"options.py": code}).resolve()
    request = ResearchRequest(question=text)
    report: dict[str, Any] = await research_codebase(service_for(root, data_dir=own_folders), request)
    assert report["intent"] == BARE_MESSAGES[text]
    if report["intent"] == "error":
        line = 4 if "option" in text else 6
        assert report["analyzer"]["value"]["key_findings"][0].startswith(f"options.py:{line} in ")
