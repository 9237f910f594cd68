"""Who calls something: every site, grouped by caller, and counted (P8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retinue.answers.callers import list_callers
from retinue.answers.locator import locate
from retinue.answers.role_context import RoleContext
from retinue.core import RoleResult, Stop
from retinue.service import ResearchRequest, Service, research_codebase
from tests.answers.conftest import ContextFor, ContextIn, findings_starting as starts, write


def callers_of(context: RoleContext) -> RoleResult:
    return list_callers(context, locate(context, 8, Stop()).places, Stop())


def test_every_site_is_listed_and_tests_come_last(context_for: ContextFor) -> None:
    result = callers_of(context_for("who calls with_retry?"))
    assert [finding.split(":")[0] for finding in result.key_findings] == [
        "src/shop/payment.py",
        "src/shop/stock.py",
        "tests/test_retry.py",
    ]
    assert result.key_findings[0] == (
        "src/shop/payment.py:5: `charge_card` calls `with_retry`: "
        "`return with_retry(lambda: gateway.charge(amount), RetryPolicy())`"
    )
    assert "is used at 2 places in 2 callers of 2 files and at 1 place in tests" in result.summary


def test_places_beside_the_callers_have_the_name(tmp_path: Path, context_in: ContextIn) -> None:
    """A file that shares only a part of the name is no place to look at."""
    files = {
        "schema.py": "def invoke_field_validators(data):\n    return data\n\n\n"
        "def load(data):\n    return invoke_field_validators(data)\n",
        "validate.py": "class FieldValidators:\n    def invoke(self, field):\n        return field\n",
    }
    context = context_in(write(tmp_path / "fields", files), "who calls invoke_field_validators?")
    found = locate(context, 8, Stop())
    assert {one.path for one in found.references} == {"schema.py"}


def test_many_sites_are_complete_and_grouped_by_caller(tmp_path: Path, context_in: ContextIn) -> None:
    files = {"core.py": "def ring(bell):\n    return bell\n"}
    for number in range(12):
        body = "".join(f"    ring({line})\n" for line in range(3))
        files[f"user_{number:02}.py"] = f"from core import ring\n\n\ndef use_{number}():\n{body}"
    result = callers_of(context_in(write(tmp_path / "bells", files), "who calls `ring`?"))
    assert "at 36 places in 12 callers of 12 files" in result.summary
    assert len(result.key_findings) == 12
    assert len(result.references) == 36
    assert all(finding.endswith("; also on lines 6, 7") for finding in result.key_findings)


GO = {
    "go.mod": "module example.com/bell\n",
    "bell.go": (
        "package bell\n\ntype Bell struct{}\n\nfunc (b *Bell) Close() {}\n\n"
        "type Tower struct{ Top *Bell }\n\ntype Town struct{ Tower *Tower }\n\n"
        "type Door struct{}\n\nfunc (d *Door) Close() {}\n"
    ),
    "use.go": (
        "package bell\n\nfunc shut(town *Town, one any) {\n\ttown.Tower.Top.Close()\n"
        "\tmake(one).Close()\n}\n\n"
        "func shutDoor(door *Door) {\n\tdoor.Close()\n}\n"
    ),
}


def test_chain_of_fields_is_followed_and_unknown_objects_are_counted(
    tmp_path: Path, context_in: ContextIn
) -> None:
    """P8: a method of many types may be called on an object of unknown type, and the count says so."""
    result = callers_of(context_in(write(tmp_path / "town", GO), "who calls Bell.Close?"))
    assert [finding.partition(": `town")[0] for finding in result.key_findings] == [
        "use.go:4: `shut` calls `Bell.Close`"
    ]
    assert "is used at least at 1 place in 1 caller of 1 file; 1 more place may use it" in result.summary


def test_every_call_is_listed_in_a_language_whose_names_are_not_resolved(
    tmp_path: Path, context_in: ContextIn
) -> None:
    calls = "".join(f"  tower.ring({number})\n" for number in range(8))
    files = {
        "bell.rb": "class Bell\n  def ring(times)\n    times\n  end\nend\n",
        "use.rb": f'def call_all(tower)\n{calls}  "tower.ring(9)" # tower.ring\nend\n',
    }
    result = callers_of(context_in(write(tmp_path / "tower", files), "who calls Bell.ring?"))
    assert "`Bell.ring` may be used at 8 places in 1 caller of 1 file" in result.summary


CALLS = [
    (
        "bell.go",
        "package bell\n\nfunc Ring() int {\n\treturn 1\n}\n\nfunc Play() int {\n\treturn Ring()\n}\n",
        "Ring",
        "`Play` calls `Ring`",
    ),
    (
        "bell.rs",
        "fn ring() -> u8 {\n    1\n}\n\nfn play() -> u8 {\n    ring()\n}\n",
        "ring",
        "`play` calls `ring`",
    ),
    (
        "bell.ts",
        "function ring() {\n  return 1;\n}\n\nfunction play() {\n  return ring();\n}\n",
        "ring",
        "`play` calls `ring`",
    ),
    (
        "Bell.java",
        "class Bell {\n  int ring() {\n    return 1;\n  }\n\n  int play() {\n    return ring();\n  }\n}\n",
        "ring",
        "`Bell.play` calls `Bell.ring`",
    ),
    (
        "bell.c",
        "int ring(void)\n{\n  return 1;\n}\n\nint play(void)\n{\n  return ring();\n}\n",
        "ring",
        "`play` calls `ring`",
    ),
]


@pytest.mark.parametrize(("name", "code", "called", "expected"), CALLS, ids=[call[0] for call in CALLS])
def test_callers_are_found_in_every_language(
    tmp_path: Path, context_in: ContextIn, name: str, code: str, called: str, expected: str
) -> None:
    result = callers_of(context_in(write(tmp_path / "bells", {name: code}), f"who calls `{called}`?"))
    assert [expected in finding for finding in result.key_findings] == [True]


def test_no_caller_is_said_to_be_none(context_for: ContextFor) -> None:
    result = callers_of(context_for("who calls reserve_items?"))
    assert result.summary == "No use of `reserve_items` was found outside of its definition."
    assert result.key_findings == ()


def test_method_is_used_only_where_it_is_called_on_something(project: Path, context_for: ContextFor) -> None:
    write(
        project,
        {
            "src/shop/other.py": "def delay():\n    pass\n\n\ndelay()\n",
            "src/shop/cart.py": "class Cart:\n    def fill(self):\n        pass\n\n\n"
            "def go(cart, cart_labels):\n    cart_labels.fill()\n    my_cart2.fill()\n",
        },
    )
    result = callers_of(context_for("what is RetryPolicy.delay?"))
    assert starts(result, "src/shop/retry.py:27: `with_retry` uses `RetryPolicy.delay`")
    assert not starts(result, "src/shop/other.py:5")
    result = callers_of(context_for("what is Cart.fill?"))
    assert starts(result, "src/shop/cart.py:8: `go` may use `Cart.fill`")
    assert not starts(result, "src/shop/cart.py:7")  # labels of a cart are no cart


def test_type_with_the_same_name_in_another_file_is_not_confused(
    project: Path, context_for: ContextFor
) -> None:
    """P8: a call on `self` belongs to the type of its own file."""
    saving = "class Store:\n    def save_all(self): ...\n\n    def flush(self):\n        self.save_all()\n"
    other = "class Store(Base):\n    def rotate(self):\n        self.save_all()\n"
    write(project, {"src/shop/database.py": saving, "src/shop/files.py": other})
    result = callers_of(context_for("who calls Store.save_all in database.py?"))
    assert starts(result, "src/shop/database.py:5: `Store.flush` calls `Store.save_all`")
    assert not starts(result, "src/shop/files.py:")


def test_calls_of_a_function_to_itself_are_listed(project: Path, context_for: ContextFor) -> None:
    write(
        project, {"src/shop/tree.py": "def visit_all(node):\n    for one in node:\n        visit_all(one)\n"}
    )
    (call,) = callers_of(context_for("who calls visit_all?")).key_findings
    assert call == "src/shop/tree.py:3: `visit_all` calls `visit_all`: `visit_all(one)`"


@pytest.mark.anyio
async def test_role_that_a_limit_stopped_says_so_and_nothing_else(service: Service) -> None:
    """P2, P8: "no line has the words" would be false, because no line was read."""
    request = ResearchRequest(question="who calls with_retry?", constraints={"maxBytesRead": 60})
    report: dict[str, Any] = await research_codebase(service, request)
    if "analyzer" in report:
        value = report["analyzer"]["value"]
        assert "No line" not in report["summary"]
        assert value["confidence"] == "low"


WORKSPACES = {
    "rust": (
        {
            "a/Cargo.toml": '[package]\nname = "crate_a"\n',
            "a/src/lib.rs": "pub fn crunch_it() {}\n\nfn near() {\n    crunch_it();\n}\n",
            "b/src/lib.rs": "use crate_a::crunch_it;\n\nfn far() {\n    crunch_it();\n"
            "    crate_a::crunch_it();\n}\n",
        },
        "2 more places may use it",
    ),
    "typescript": (
        {
            "packages/a/index.ts": "export function crunch_it() {}\n\nfunction near() {\n  crunch_it()\n}\n",
            "packages/b/index.ts": "import { crunch_it } from '@w/a'\n\nfunction far() {\n  crunch_it()\n}\n",
        },
        "1 more place may use it",
    ),
}


@pytest.mark.parametrize("language", WORKSPACES)
def test_count_is_no_whole_one_if_another_package_may_use_it_P8(
    tmp_path: Path, context_in: ContextIn, language: str
) -> None:
    """Imports between packages of one project are not resolved, but their calls are counted."""
    files, more = WORKSPACES[language]
    result = callers_of(context_in(write(tmp_path / "workspace", files), "who calls crunch_it?"))
    assert "is used at least at 1 place in 1 caller of 1 file" in result.summary
    assert more in result.summary


def test_callers_of_a_name_that_nothing_defines_are_told_as_the_nearest_P8(
    tmp_path: Path, context_in: ContextIn
) -> None:
    files = {
        "app.py": "def clock_tick():\n    return 1\n\n\ndef run():\n    return clock_tick()  # monotonic\n"
    }
    result = callers_of(context_in(write(tmp_path / "clock", files), "who calls monotonic?"))
    assert result.summary.startswith("The project defines nothing with the name that the question asks for")
    assert result.confidence == "low"
