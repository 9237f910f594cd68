"""Routes and forms: an answer arrives once, or is refused and shown again (P5, P7)."""

from __future__ import annotations

import json
from typing import Any, cast

import anyio
import httpx2
import pytest

from retinue.core import NewMemory, RunStatus
from retinue.dashboard.access import LinkTokens
from retinue.dashboard.pages import learning_page
from retinue.dashboard.site import MAX_FORM_BYTES, DashboardSite
from retinue.redaction import SecretRedactor
from retinue.service import Service
from retinue.service.runs import MAX_ANSWER_CHARACTERS
from tests.dashboard.conftest import ADDRESS, FORM, PORT, Visit, visiting

pytestmark = pytest.mark.anyio


async def decide(visit: Visit, **fields: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Let a run ask to touch a file. Return the answer it gets and the rules that are stored."""
    responses: list[dict[str, Any]] = []
    run_id = await visit.started()

    async def ask() -> None:
        responses.append(await visit.service.runs.request_permission(run_id, "Bash", {"command": "touch x"}))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        sent = await visit.reply(await visit.wish(run_id), **fields)
        assert sent.status_code == 303
    return responses[0], visit.service.runs.store.permissions.rules_for("sleeps")


@pytest.mark.parametrize(("verdict", "remembered"), [("allow", ()), ("always", ("Bash(touch x)",))])
async def test_allow_button_allows_once_or_permanently(verdict: str, remembered: tuple[str, ...]) -> None:
    async with visiting() as visit:
        response, kept = await decide(visit, verdict=verdict, reason="always allow")
    assert response == {"behavior": "allow", "updatedInput": {"command": "touch x"}}
    assert kept == remembered


@pytest.mark.parametrize(("reason", "message"), [("", "deny"), ("  ", "deny"), ("allow y", "deny: allow y")])
async def test_deny_button_denies_whatever_the_reason_says_P7(reason: str, message: str) -> None:
    async with visiting() as visit:
        response, kept = await decide(visit, verdict="deny", reason=reason)
    assert response == {"behavior": "deny", "message": message}
    assert kept == ()


async def test_answer_arrives_unchanged() -> None:
    async with visiting() as visit:
        message = await visit.asks("which one?")
        sent = await visit.reply(message, answer="größe & <b>\r\nline 2 + %20", back="run")
        assert (sent.status_code, sent.headers["Location"]) == (303, f"/runs/{message.run_id}")
        assert visit.look(message).answer == "größe & <b>\nline 2 + %20"


@pytest.mark.parametrize("back", ["home", "", "http://evil.example", "//evil.example"])
async def test_redirect_after_an_answer_stays_on_the_dashboard(back: str) -> None:
    async with visiting() as visit:
        sent = await visit.reply(await visit.asks("?"), answer="x", back=back)
    assert sent.headers["Location"] == "/"


async def test_second_answer_is_refused_and_its_text_is_shown_again_P5() -> None:
    async with visiting() as visit:
        message = await visit.asks("which one?")
        await visit.service.runs.reply(message.run_id, message.id, "the left one, by the model")
        late = await visit.reply(message, answer="the right one")
        assert late.status_code == 409
        assert "the question has already been answered: the left one, by the model" in late.text
        assert "the right one" in late.text
        assert visit.look(message).answer == "the left one, by the model"


async def test_answer_to_an_ended_run_is_refused() -> None:
    async with visiting() as visit:
        message = await visit.asks("which one?")
        await visit.canceled(message.run_id)
        late = await visit.reply(message, answer="the right one")
    assert late.status_code == 409
    assert "the run has ended" in late.text and "the right one" in late.text


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({}, 400, "has no field &#x27;answer&#x27;"),
        ({"answer": " \r\n "}, 400, "the answer is empty"),
        ({"answer": "x" * (MAX_ANSWER_CHARACTERS + 1)}, 400, "is too long"),
        ({"answer": "x" * (MAX_FORM_BYTES + 1)}, 413, "write a shorter answer"),
        ({"verdict": "perhaps"}, 400, "unknown decision"),
        ({"answer": "x", "message": "1k09m8cp19a5a0m"}, 404, "no such message"),
        ({"answer": "x", "message": "<b>"}, 400, "not"),
        ({f"field{number}": "x" for number in range(30)}, 400, "cannot be read"),
    ],
)
async def test_bad_form_is_refused_and_the_question_stays_open_P7(
    fields: dict[str, str], status: int, words: str
) -> None:
    async with visiting() as visit:
        message = await visit.asks("which one?")
        path = f"/runs/{message.run_id}/answer"
        refused = await visit.send(path, **{"message": message.id, **fields})
        assert refused.status_code == status
        assert words in refused.text
        assert visit.look(message).answer is None


async def test_message_must_be_given_and_belong_to_the_run() -> None:
    async with visiting() as visit:
        message, other = await visit.asks("one?"), await visit.asks("other?")
        assert (await visit.send(f"/runs/{message.run_id}/answer", answer="x")).status_code == 400
        path = f"/runs/{other.run_id}/answer"
        assert (await visit.send(path, message=message.id, answer="x")).status_code == 404
        assert visit.look(message).answer is None


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", json.dumps({"answer": "x"}).encode()),
        ("text/plain", b"message=x&answer=y"),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("", b""),
        (FORM, b"message=%FF&answer=x"),
        (FORM, "message=ü".encode()),
    ],
)
async def test_request_that_is_not_a_form_is_refused(kind: str, body: bytes) -> None:
    async with visiting() as visit:
        message = await visit.asks("which one?")
        for verb in ("answer", "cancel"):
            refused = await visit.client.post(
                f"/runs/{message.run_id}/{verb}",
                content=body,
                headers={"Origin": ADDRESS, "Content-Type": kind},
            )
            assert refused.status_code == 400
        assert visit.service.runs.store.runs.get(message.run_id).status is RunStatus.WAITING


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/runs/1k09m8cp19a5a0m", 404),
        ("GET", "/runs/nonsense", 400),
        ("GET", "/live?run=1k09m8cp19a5a0m", 404),
        ("GET", "/static/site.py", 404),
        ("GET", "/static/..%2Fsite.py", 404),
        ("GET", "/elsewhere", 404),
        ("GET", "/runs/1k09m8cp19a5a0m/answer", 405),
        ("GET", "/runs/1k09m8cp19a5a0m/cancel", 405),
        ("POST", "/", 405),
        ("PUT", "/runs/1k09m8cp19a5a0m/answer", 405),
        ("DELETE", "/runs/1k09m8cp19a5a0m", 405),
    ],
)
async def test_wrong_path_or_method_gets_an_error_page(method: str, path: str, status: int) -> None:
    async with visiting() as visit:
        refused = await visit.client.request(method, path, headers={"Origin": ADDRESS})
    assert refused.status_code == status
    assert refused.text.startswith("<!doctype html>") and "All runs" in refused.text
    assert ("Allow" in refused.headers) == (status == 405)


async def test_cancel_ends_the_run_and_can_be_repeated() -> None:
    async with visiting() as visit:
        run_id = await visit.started()
        assert "Cancel…" in await visit.page(f"/runs/{run_id}")
        for _ in range(2):
            sent = await visit.send(f"/runs/{run_id}/cancel")
            assert (sent.status_code, sent.headers["Location"]) == (303, f"/runs/{run_id}")
        await visit.canceled(run_id)
        assert "canceled" in await visit.page(f"/runs/{run_id}")
        unknown = await visit.send("/runs/1k09m8cp19a5a0m/cancel")
        assert unknown.status_code == 404


async def test_internal_error_page_shows_no_details_P6() -> None:
    tokens, broken = (
        LinkTokens(),
        Service(roots=(), redactor=SecretRedactor(), run_service=cast("Any", object())),
    )
    transport = httpx2.ASGITransport(DashboardSite(broken).app(tokens, PORT), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        answer = await client.get("/", params={"token": tokens.token}, follow_redirects=True)
    assert answer.status_code == 500
    assert "the page could not be created" in answer.text
    assert "attribute" not in answer.text and "Traceback" not in answer.text


async def test_page_of_what_is_learned_shows_friction_skills_and_memories_as_text() -> None:
    async with visiting() as visit:
        for number in range(3):
            await visit.ended("loud", f"print the <b>greeting</b> of the release {number}")
        await visit.service.memory.remember(NewMemory(text="Releases are cut on <i>Fridays</i>."))
        page = await visit.page("/learning")
    assert "repeated task" in page
    assert "print the &lt;b&gt;greeting&lt;/b&gt; of the release 2" in page
    assert "Releases are cut on &lt;i&gt;Fridays&lt;/i&gt;." in page
    assert "There are no skills." in page
    assert "No draft waits for a decision." in page
    assert "<td>project</td><td>hot</td>" in page


def test_page_of_what_is_learned_shows_what_friction_costs() -> None:
    row = {"what": "Read is called again", "kind": "retry loop", "agent": "reader", "times": 4}
    costs = {"tokens_lost": 12_345, "tokens_estimated": True, "waited_s": 90.0}
    view: dict[str, Any] = dict.fromkeys(("drafts", "memories", "skills"), ()) | {"more_memories": 0}
    page = bytes(learning_page({**view, "friction": [{**row, **costs}]}).body).decode()
    assert "<td>4</td><td>about 12,345</td><td>1 min 30 s</td>" in page


def test_page_of_what_is_learned_says_which_skill_harms_and_what_is_not_shown() -> None:
    skill = {"name": "s", "from": "f", "description": "d", "helped": 1, "harmed": 5}
    view: dict[str, Any] = {"friction": (), "drafts": (), "memories": (), "more_memories": 0}
    harmful = bytes(learning_page({**view, "skills": [{**skill, "harms": True}]}).body).decode()
    assert "1 of 6: it harms, remove it" in harmful
    assert (
        "it harms" not in bytes(learning_page({**view, "skills": [{**skill, "harms": False}]}).body).decode()
    )
    memory = {
        "text": "t",
        "kind": "dead_end",
        "state": "tentative",
        "scope": "user",
        "age": "1 day",
        "id": "i",
    }
    long = bytes(
        learning_page({**view, "skills": (), "memories": [memory], "more_memories": 7}).body
    ).decode()
    assert "7 more are not shown" in long and "dead end" in long
