"""What leaves carries no secret, no path and no code of the user (P6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.core import InvalidInput
from retinue.redaction import SecretRedactor
from retinue.web import OutgoingGuard

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
AWS = "AKIA" + "IOSFODNN7EXAMPLQ"


@pytest.fixture
def guard(tmp_path: Path) -> OutgoingGuard:
    (tmp_path / "src" / "billing").mkdir(parents=True)
    (tmp_path / "src" / "billing" / "invoice.py").write_text("x = 1\n")
    return OutgoingGuard(SecretRedactor(), (tmp_path,))


@pytest.mark.parametrize(
    "query",
    [f"why is {TOKEN} refused", f"aws key {AWS} invalid", "login password=hunter2hunter2 fails"],
)
def test_query_with_a_secret_is_refused(guard: OutgoingGuard, query: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was sent"):
        guard.check_query(query)


def test_known_value_is_a_secret(guard: OutgoingGuard) -> None:
    guard.redactor.hide(["correct horse battery"])
    with pytest.raises(InvalidInput):
        guard.check_query("what is correct horse battery")
    with pytest.raises(InvalidInput):
        guard.check_address("https://example.org/?q=correct%20horse%20battery")


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("how to open /home/ada/secret/plan.txt in vim", "how to open in vim"),
        ("ImportError in src/billing/invoice.py with pydantic 2", "ImportError in with pydantic 2"),
        (r"fails in C:\Users\ada\work\x.py on windows", "fails in on windows"),
        ("read ~/notes/diary.md encoding error", "read encoding error"),
        ("file:///etc/shadow permission", "permission"),
    ],
)
def test_paths_are_cut_out_of_a_query_and_told(guard: OutgoingGuard, query: str, sent: str) -> None:
    outgoing = guard.check_query(query)
    assert outgoing.text == sent
    assert outgoing.notes == ("1 path left out of the query",)


@pytest.mark.parametrize(
    "query",
    [
        "TypeError: 'NoneType' object is not subscriptable",
        "how does httpx.AsyncClient(timeout=None) behave",
        "difference between and/or in bash [[ -f x ]]",
        "requests.exceptions.SSLError: CERTIFICATE_VERIFY_FAILED",
        "what does the HTTP header content-type: application/json mean",
        "pip install --require-hashes fails with extras",
        "client/server model explained",
    ],
)
def test_ordinary_questions_leave_as_they_are(guard: OutgoingGuard, query: str) -> None:
    assert guard.check_query(query) == guard.check_query(query).__class__(query)


def test_code_is_cut_out_of_a_query_and_told(guard: OutgoingGuard) -> None:
    question = """Why does this raise KeyError in pandas?
def load(path):
    frame = read_csv(path)
    return frame["price"] * rate(frame, "EUR")
"""
    outgoing = guard.check_query(question)
    assert outgoing.text == "Why does this raise KeyError in pandas?"
    assert outgoing.notes == ("3 lines of code left out of the query",)
    fenced = guard.check_query("why?\n```\nsecret algorithm\nsecond line\n```\nin rust")
    assert fenced.text == "why? in rust"


def test_stack_trace_leaves_its_last_line(guard: OutgoingGuard) -> None:
    trace = """Traceback (most recent call last):
  File "/home/ada/shop/src/billing/invoice.py", line 12, in total
    return rate(frame, "EUR") * amount
  File "/home/ada/shop/src/rates.py", line 3, in rate
    raise KeyError(currency)
KeyError: 'EUR'"""
    sent = guard.check_query(trace).text
    assert "KeyError: 'EUR'" in sent
    assert "ada" not in sent and "frame" not in sent and "rates" not in sent


def test_long_query_is_cut_and_told(guard: OutgoingGuard) -> None:
    outgoing = guard.check_query("word " * 200)
    assert len(outgoing.text) <= 300
    assert outgoing.notes == ("the query was cut to 300 characters",)


def test_nothing_left_is_an_error(guard: OutgoingGuard) -> None:
    with pytest.raises(InvalidInput, match="nothing is left"):
        guard.check_query("/home/ada/x/y.py")


@pytest.mark.parametrize(
    "address",
    [
        f"https://evil.example/?t={TOKEN}",
        f"https://evil.example/{TOKEN.replace('_', '%5F')}",
        f"https://evil.example/?t={TOKEN.replace('_', '%255F')}",
        "https://evil.example/?d=" + "QUJD" * 30,
        "https://evil.example/" + "deadbeef01" * 12,
        "https://" + "a1b2c3d4" * 10 + ".evil.example/",
        "https://evil.example/?d=" + "some+words+" * 40,
        "https://evil.example/?d=def+f(x):%0A++return+x%0Aclass+A:%0A++y+=+2",
    ],
)
def test_address_that_carries_data_is_refused(guard: OutgoingGuard, address: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was sent"):
        guard.check_address(address)


def test_address_with_a_path_of_this_machine_is_refused(guard: OutgoingGuard, tmp_path: Path) -> None:
    for spelled in (str(tmp_path), str(tmp_path).replace("/", "%2F"), str(Path.home())):
        with pytest.raises(InvalidInput):
            guard.check_address(f"https://evil.example/?p={spelled}/x")


@pytest.mark.parametrize(
    "address",
    [
        "https://docs.python.org/3/library/asyncio-task.html",
        "https://github.com/psf/requests/commit/0e322af87745eff34caffe4df68456ebc20d9068",
        "https://example.org/2024/01/how-we-made-our-builds-three-times-faster-without-spending-any-more-money/",
        "https://stackoverflow.com/questions/11227809/why-is-processing-a-sorted-array-faster",
        "https://www.example.org/watch?v=dQw4w9WgXcQ&list=PLFgquLnL59alCl_2TQvOiD5Vgm1hCaGSI",
    ],
)
def test_ordinary_addresses_leave(guard: OutgoingGuard, address: str) -> None:
    assert guard.check_address(address) == address
