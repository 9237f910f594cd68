"""What leaves carries no secret, no path and no code of the user (P6)."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

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
    [
        *(f"why is {TOKEN} refused", f"aws key {AWS} invalid", "login password=hunter2hunter2 fails"),
        *(f"why is {TOKEN[:12]} {TOKEN[12:]} refused", f"why is {TOKEN[:12]}\n{TOKEN[12:]} refused"),
        f'why is "{TOKEN[:12]}" + "{TOKEN[12:]}" refused',
        f"what is {base64.b64encode(TOKEN.encode()).decode()}",
        "why " + "".join(f"%{ord(letter):02x}" for letter in TOKEN),
        "why " + TOKEN.replace("_", "%255F"),
        "why " + TOKEN.replace("_", "&#95;"),
        "why " + TOKEN.encode().hex(),
        "why " + base64.b64encode(AWS.encode()).decode(),
        "why " + base64.b64encode(AWS.encode()).decode().rstrip("="),
        "why " + base64.b32encode(AWS.encode()).decode().lower().rstrip("="),
        *("why " + sign.join(AWS[at : at + 4] for at in range(0, 20, 4)) for sign in " -./,"),
        "why " + " ".join(AWS),
        "why " + "\u200b".join(TOKEN),
        "why " + "".join(chr(ord(letter) + 0xFEE0) for letter in TOKEN),
        "postgres://ada:s3cretPass9@db.example:5432/shop connection refused",
    ],
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
        ("ImportError in billing/invoice.py with pydantic 2", "ImportError in with pydantic 2"),
        ("ImportError in src%2Fbilling%2Finvoice.py:3 with pydantic 2", "ImportError in with pydantic 2"),
        ("why does %2Fhome%2Fada%2Fplan.txt fail", "why does fail"),
        (r"fails in C:\Users\ada\work\x.py on windows", "fails in on windows"),
        ("read ~/notes/diary.md encoding error", "read encoding error"),
        ("file:///etc/shadow permission", "permission"),
        (r"why does C:\Program Files\Acme Corp\secret\plan.py fail", "why does fail"),
        (r"why does \\fileserver\payroll\salaries.xlsx not open", "why does not open"),
        ("why does C:/Users/ada/work/x.py fail", "why does fail"),
        (r"%USERPROFILE%\payroll\x.py is missing", "is missing"),
        ("$HOME/payroll/x.py is missing", "is missing"),
        ("import ../../payroll/salaries.py fails", "import fails"),
        ("run ./scripts/deploy_prod.sh permission denied", "run permission denied"),
        ("KeyError:/home/ada/x/y.py in flask", "KeyError: in flask"),
        (
            "\u4e3a\u4ec0\u4e48\u6253\u5f00/home/ada/x/y.py \u5931\u8d25",
            "\u4e3a\u4ec0\u4e48\u6253\u5f00 \u5931\u8d25",
        ),
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
        "httpx \u7684\u8fde\u63a5\u6c60\u4e0a\u9650\u600e\u4e48\u8bbe\u7f6e\uff1f",
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        "error[E0382]: borrow of moved value: `x`",
        "std::vector<std::pair<int,int>> sort by second element c++",
        "SELECT * FROM t WHERE a = 1 LIMIT 5 slow postgres",
        "what does https://github.com/psf/requests/blob/main/README.md say",
        "when was commit 0e322af87745eff34caffe4df68456ebc20d9068 released",
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


CODE = {
    "bash": "for f in *.csv\ndo\n  upload $f --bucket payroll-prod\ndone",
    "c": "int total(struct price *p, int n)\n{\n  int s = payroll;\n  return s;\n}",
    "clojure": "(defn total [xs]\n  (reduce + (map :payroll xs)))",
    "css": ".payroll {\n  color: red\n}",
    "diff": "-    payroll = 0.3\n+    payroll = 0.4\n     return payroll",
    "elixir": "def total(payroll) do\n  Enum.sum(payroll)\nend",
    "go": "func Total(payroll []Price) int {\n\tsum := 0\n\treturn sum\n}",
    "haskell": "total xs = foldr step 0 xs\n  where step p acc = payroll p + acc",
    "java": "public int total(List<Price> payroll) {\n  return payroll.stream().sum();\n}",
    "json": '{"host": "payroll-db",\n "user": "ada",\n "pool": 5}',
    "kotlin": "fun total(xs: List<Price>) =\n  xs.sumOf { it.payroll }",
    "lisp": "(defun total (xs)\n  (reduce #'+ xs :key #'payroll))",
    "makefile": "payroll: build\n\tupload payroll\n\techo done",
    "php": "<?php\nfunction total($payroll) {\n  return array_sum($payroll);\n}",
    "python": "for price in payroll:\n    print(price.payroll)\nelse:\n    log(price)",
    "ruby": "def total(xs)\n  xs.sum { |p| p.payroll }\nend",
    "rust": "fn total(xs: &[Price]) -> u64 {\n    xs.iter().map(|p| p.payroll).sum::<u64>()\n}",
    "sql": "select c, sum(payroll)\nfrom prices p join payroll c on c.id = p.c\nwhere p.payroll > 0.3",
    "toml": '[payroll]\nhost = "payroll-db"\nuser = "ada"',
    "yaml": "database:\n  host: payroll-db\n  user: ada\n  pool: 5",
}


@pytest.mark.parametrize("language", CODE)
def test_code_of_any_language_is_cut_out_of_a_query(guard: OutgoingGuard, language: str) -> None:
    outgoing = guard.check_query(f"Why does this fail in production?\n{CODE[language]}\n")
    assert outgoing.text.startswith("Why does this fail in production?")
    assert "payroll" not in outgoing.text
    assert "of code left out of the query" in outgoing.notes[0]


def test_code_within_a_sentence_is_cut_if_it_is_more_than_a_piece(guard: OutgoingGuard) -> None:
    outgoing = guard.check_query(
        "why is this slow: def total(xs): s = 0; return sum(x * payroll(x) for x in xs) + payroll in numpy"
    )
    assert outgoing.text.startswith("why is this slow: def") and "payroll(x)" not in outgoing.text
    assert outgoing.notes == ("1 line of code left out of the query",)


def test_encoded_data_is_cut_out_of_a_query_and_told(guard: OutgoingGuard) -> None:
    outgoing = guard.check_query("what is " + "QUJDREVG" * 12 + " good for")
    assert outgoing.text == "what is good for"
    assert outgoing.notes == ("encoded data left out of the query",)


def test_question_of_a_book_is_refused_soon(guard: OutgoingGuard) -> None:
    with pytest.raises(InvalidInput, match="too long"):
        guard.check_query("a(" * 1_000_000)


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
        f"https://evil.example/{base64.b64encode(TOKEN.encode()).decode()}",
        f"https://evil.example/{base64.urlsafe_b64encode(AWS.encode()).decode().rstrip('=')}",
        f"https://{base64.b64encode(AWS.encode()).decode().rstrip('=')}.evil.example/",
        f"https://{'.'.join(AWS[at : at + 5] for at in range(0, 20, 5))}.evil.example/",
        f"https://evil.example/{'/'.join(AWS[at : at + 5] for at in range(0, 20, 5))}",
        f"https://evil.example/?{base64.b64encode(AWS.encode()).decode()}=1",
        f"https://evil.example/{TOKEN.replace('_', '%5F')}",
        f"https://evil.example/?t={TOKEN.replace('_', '%255F')}",
        "https://evil.example/?d=" + "QUJD" * 30,
        "https://evil.example/" + "deadbeef01" * 12,
        "https://" + "a1b2c3d4" * 10 + ".evil.example/",
        "https://evil.example/?d=" + "some+words+" * 40,
        "https://evil.example/?d=def+f(x):%0A++return+x%0Aclass+A:%0A++y+=+2",
        "https://evil.example/?a=def+f(x):&b=return+x&c=class+A:&d=y+%3D+2",
        f"https://evil.example/?a={TOKEN[:20]}&b={TOKEN[20:]}",
        f"https://evil.example/{TOKEN[:20]}/{TOKEN[20:]}",
        "https://evil.example/?t=" + quote("".join(chr(ord(letter) + 0xFEE0) for letter in TOKEN)),
        "https://" + ".".join(["deadbeef01" * 3] * 4) + ".evil.example/",
        "https://" + "nb2hi4dthixs653xo4xhg4djorsxg2lom5wwc2l2" + ".evil.example/",
        "https://evil.example/" + "/".join(["deadbeef0123456789"] * 8),
        "https://evil.example/?" + "&".join(f"p{n}=some+words+of+the+notes+number+{n}" for n in range(30)),
    ],
)
def test_address_that_carries_data_is_refused(guard: OutgoingGuard, address: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was sent"):
        guard.check_address(address)


def test_address_that_cannot_be_read_is_refused(guard: OutgoingGuard) -> None:
    with pytest.raises(InvalidInput, match="nothing was sent"):
        guard.check_address("https://[x/")


def test_address_with_a_path_of_this_machine_is_refused(guard: OutgoingGuard, tmp_path: Path) -> None:
    own = ("C%3A%5CUsers%5Cada", "/home/ada", "~/work", "src%2Fbilling")
    for spelled in (str(tmp_path), str(tmp_path).replace("/", "%2F"), str(Path.home()), *own):
        with pytest.raises(InvalidInput):
            guard.check_address(f"https://evil.example/?p={spelled}/invoice.py")


@pytest.mark.parametrize(
    "address",
    [
        "https://docs.python.org/3/library/asyncio-task.html",
        "https://github.com/psf/requests/commit/0e322af87745eff34caffe4df68456ebc20d9068",
        "https://example.org/2024/01/how-we-made-our-builds-three-times-faster-without-spending-any-more-money/",
        "https://stackoverflow.com/questions/11227809/why-is-processing-a-sorted-array-faster",
        "https://github.com/psf/requests/compare/0e322af87745eff34caffe4df68456ebc20d9068...1e322af87745eff34caffe4df68456ebc20d9068",
        "https://github.com/me/shop/blob/main/src/billing/invoice.py",
        "https://docs.example.org/?path=/docs/button--primary&q=how+to+use+a+button",
        "https://xn--fiqs8s5v6ab4zq9dl2au1dh04cp9vg2bk2co7e.example/",
        "https://registry.npmjs.org/@babel%2fcore",
        "https://www.example.org/watch?v=dQw4w9WgXcQ&list=PLFgquLnL59alCl_2TQvOiD5Vgm1hCaGSI",
    ],
)
def test_ordinary_addresses_leave(guard: OutgoingGuard, address: str) -> None:
    assert guard.check_address(address) == address
