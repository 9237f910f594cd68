"""Agents start from code that our search finds. A weak model answers from it, or says that it is missing."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.core import (
    Budget,
    DeadlineExceeded,
    InvalidInput,
    Json,
    ModelFailed,
    ModelSkills,
    ModelSpeed,
    Prompt,
    SkillNotes,
    Unverified,
    estimate_tokens,
)
from retinue.executors.local.code_reader import ANSWER_TOKENS, LINE_SCHEMA, MAX_SILENT_LOOKS
from retinue.executors.local.guided_search import (
    NO_CODE_FOUND,
    NOT_ANSWERED,
    NOT_CERTAIN,
    NOTHING_FOUND,
    NOTHING_STANDS_OUT,
    QUOTED_HEADING,
    SAYS_OTHERWISE,
    TOO_SLOW,
    TOO_SMALL,
    UNCONFIRMED,
)
from retinue.executors.local.likely_code import MIN_LOOKS
from retinue.executors.local.search_words import REPHRASE_TASK, WORDS_TASK
from retinue.executors.local.shown_code import CHOSEN, NEAREST
from tests.executors.local.loop_support import TASK, Trial
from tests.models.scripted_model import calls
from tests.tools.tool_support import metered

pytestmark = pytest.mark.anyio

FILES = {
    "src/app.py": "import os\n\n\ndef retry(times):\n    return times\n",
    "src/wait.py": "DELAY = 42\n\n\ndef wait_between_tries():\n    return DELAY\n",
    "src/zebra.py": "STRIPES = 42\n\n\ndef count_stripes():\n    return STRIPES\n",
    "src/net.py": "def connect(host):\n    return open(host)\n",
    "tests/test_retry.py": "def test_retry():\n    assert retry(3) == 3\n",
}


def found(answer: str, quote: str) -> str:
    return json.dumps({"quote": quote, "answer": answer, "shown": True})


RETRIES = {f"src/retry_{name}.py": f"def retry_{name}(retry):\n    return {name}(retry)\n" for name in "abcd"}
STEPS = "".join(f"    step_{number}(retry)\n" for number in range(60))
LONG = {**RETRIES, "src/long.py": f"def shrink(retry):\n{STEPS}"}

NOT_SHOWN = json.dumps({"quote": "", "answer": "The code does not show it.", "shown": False})


PLACE_FORM: dict[str, Json] = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["file", "line"],
}


def in_words(output: str) -> str:
    """Return an answer without the code below it."""
    return output.partition(f"\n\n{QUOTED_HEADING}")[0]


def text_of(prompt: Prompt) -> str:
    return "\n".join(turn.text for turn in prompt.turns)


def weak(folder: Path, *script: str) -> Trial:
    """A run on a server that takes no tools. Its model takes any code for the answer."""
    trial = Trial(folder, script, files=FILES, takes_tools=False)
    trial.model.chance = 0.85
    return trial


async def test_model_answers_in_words_and_copies_the_line_that_shows_it(tmp_path: Path) -> None:
    """The first two requests begin with the same code, which a server reads once."""
    trial = weak(tmp_path, found("`retry` returns the number of times.", "4: def retry(times):"))
    outcome = await trial.run()
    assert outcome.error is None
    assert outcome.output == "`retry` returns the number of times (src/app.py:4). `def retry(times):`"
    asked, chosen = trial.prompts[-2:]
    looks = [prompt for prompt in trial.prompts if prompt.alternatives]
    assert looks and all(look.alternatives and look.max_tokens == 1 for look in looks)
    assert asked.schema is None and (asked.tools, asked.temperature) == ((), 0.0)
    assert asked.max_tokens == ANSWER_TOKENS and "4: def retry(times):" in text_of(asked)
    code, _, question = asked.turns[1].text.partition("Question:")
    assert chosen.turns[1].text.startswith(f"{code}Question:") and question
    assert chosen.schema == LINE_SCHEMA and chosen.turns[2].text == "`retry` returns the number of times."


async def test_model_sees_implementations_before_tests(tmp_path: Path) -> None:
    trial = weak(tmp_path, NOT_SHOWN)
    await trial.run()
    shown = text_of(trial.answer_prompts[0])
    assert shown.index("src/app.py") < shown.index("tests/test_retry.py")


async def test_names_that_the_model_speaks_of_find_the_next_code(tmp_path: Path) -> None:
    stripes = found("A zebra has STRIPES.", "    return STRIPES")
    trial = weak(tmp_path, NOT_SHOWN, stripes)
    outcome = await trial.run("Which stripes does a zebra have?")
    assert in_words(outcome.output) == (
        "A zebra has STRIPES (src/zebra.py:5, in count_stripes at src/zebra.py:4). `return STRIPES` "
        f"{NOT_CERTAIN}"
    ), "among the looks after two searches, one is high by chance"
    assert "return STRIPES" in text_of(trial.prompts[-1])


async def test_words_that_the_model_proposes_find_code_with_other_words(tmp_path: Path) -> None:
    files = {
        **{f"src/retry_{name}.py": f"def retry_{name}(retry):\n    return retry\n" for name in "abcdefg"},
        "src/guard.py": "def freeze_state(retry):\n    return frozenset(retry)\n",
    }
    right = found("`freeze_state` returns a frozenset of the retry.", "return frozenset(retry)")
    trial = Trial(tmp_path, [right], files=files, takes_tools=False)
    trial.model.words = ["freeze_it"]
    trial.model.chance = lambda prompt: 0.7 if "freeze_state" in text_of(prompt) else 0.3
    outcome = await trial.run("How is the result of a retry locked?")
    [asked] = trial.answer_prompts  # the model is not asked about code that it takes for something else
    assert "freeze_state" in text_of(asked)
    assert "words that the model proposes: freeze" in trial.events
    assert outcome.error is None and "src/guard.py:2" in outcome.output


@pytest.mark.parametrize("chance", [0.79, 0.6], ids=["it is likelier", "it is not"])
async def test_likely_code_has_rivals_that_are_found_in_other_words_P3(tmp_path: Path, chance: float) -> None:
    """If the right code is not among the first places, a model surely takes the wrong one for it."""
    files = {
        **{f"src/retry_{name}.py": f"def retry_{name}(retry):\n    return retry\n" for name in "abcdefg"},
        "src/guard.py": "def freeze_state(retry):\n    return frozenset(retry)\n",
    }
    reply = found(
        "It does that with the retry.", "return frozenset(retry)" if chance > 0.7 else "return retry"
    )
    trial = Trial(tmp_path, [reply], files=files, takes_tools=False)
    trial.model.words = ["freeze_it"]
    trial.model.chance = lambda prompt: (
        chance if "freeze_state" in text_of(prompt) else 0.73 if "def retry_a" in text_of(prompt) else 0.3
    )
    outcome = await trial.run("Where is the result of a retry locked?")
    [asked] = trial.answer_prompts
    assert ("freeze_state" in text_of(asked)) is (chance > 0.7)
    assert outcome.error is None and ("src/guard.py:" in outcome.output) is (chance > 0.7)


@pytest.mark.parametrize(("asks", "is_answered"), [("Where", True), ("How", False)])
async def test_place_may_have_other_words_than_the_question_but_an_explanation_needs_them_P3(
    tmp_path: Path, asks: str, is_answered: bool
) -> None:
    files = {
        **{f"src/retry_{name}.py": f"def retry_{name}(retry):\n    return retry\n" for name in "abc"},
        "src/guard.py": "def freeze_state(retry):\n    return frozenset(retry)\n",
    }
    right = found("The result is locked by `freeze_state`.", "return frozenset(retry)")
    trial = Trial(tmp_path, [right, NOT_SHOWN], files=files, takes_tools=False)
    trial.model.chance = likely("def freeze_state", 0.48)
    question = f"{asks} is the result of a retry locked against changes that callers make by mistake?"
    outcome = await trial.run(question)
    assert ("freeze_state" in outcome.output.splitlines()[0]) is is_answered
    assert not is_answered or NOT_CERTAIN in outcome.output


async def test_search_goes_on_if_no_place_stands_out_in_either_words(tmp_path: Path) -> None:
    names = "abcdefghijklmnop"
    files = {
        f"src/retry_{name}.py": f"def retry_{name}(retry):\n    return {name}(retry)\n" for name in names
    }
    first = Trial(tmp_path, [], files=files, takes_tools=False)
    first.model.chance = 0.3
    await first.run("Where is a retry called?")
    looked_at = [text_of(prompt) for prompt in first.prompts if prompt.alternatives]
    [*_, last] = (name for look in looked_at for name in names if f"def retry_{name}(" in look)
    right = found(f"`retry_{last}` calls `{last}`.", f"return {last}(retry)")
    trial = Trial(tmp_path, [right], files=files, takes_tools=False)
    trial.model.words = ["call_again"]
    trial.model.chance = likely(f"def retry_{last}(", 0.7)
    outcome = await trial.run("Where is a retry called?")
    assert len({name for name in names for look in looked_at if f"def retry_{name}(" in look}) > 12
    assert outcome.error is None and f"src/retry_{last}.py" in outcome.output
    assert NOT_CERTAIN in outcome.output, "among so many looks, one is high by chance"


@pytest.mark.parametrize(
    ("question", "is_read"),
    [
        ("How does a retry end?", False),
        ("Where does a retry end?", False),
        ("How do I end a retry?", True),
        ("How many times is a retry done?", True),
    ],
)
async def test_documentation_is_read_if_it_may_answer(tmp_path: Path, question: str, is_read: bool) -> None:
    page = "# Retries\n\nA retry is done many times until it ends. Raise `Done` to end a retry early.\n"
    trial = Trial(tmp_path, [NOT_SHOWN] * 4, files={**RETRIES, "docs/retry.md": page}, takes_tools=False)
    trial.model.chance = 0.3
    await trial.run(question)
    looks = [text_of(prompt) for prompt in trial.prompts if prompt.alternatives]
    assert any("docs/retry.md" in look for look in looks) is is_read


async def test_code_is_looked_at_again_with_the_question_in_the_words_of_a_programmer(tmp_path: Path) -> None:
    """Code that the model does not take for the answer to a question in everyday words may be that."""
    right = found("`retry_c` returns each retry.", "return c(retry)")
    trial = Trial(tmp_path, [right], files=RETRIES, takes_tools=False)
    trial.model.rephrased = "What does `retry_c` return for each retry?"
    trial.model.chance = lambda prompt: (
        0.8 if "def retry_c" in text_of(prompt) and "What does `retry_c`" in text_of(prompt) else 0.3
    )
    outcome = await trial.run("How does a retry come back once it has been done?")
    assert outcome.error is None and "src/retry_c.py:2" in outcome.output
    assert f"the question in the words of a programmer: {trial.model.rephrased}" in trial.events
    [asked] = trial.answer_prompts
    assert "Question: How does a retry come back" in text_of(asked), (
        "the answer is one to the user's question"
    )


async def test_question_that_stays_the_same_is_not_asked_again(tmp_path: Path) -> None:
    question = "How is a retry called?"
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.rephrased = "How is a retry being called?"
    trial.model.chance = 0.3
    await trial.run(question)
    looks = [text_of(prompt) for prompt in trial.prompts if prompt.alternatives]
    assert looks and len(set(looks)) == len(looks)


async def test_name_is_looked_up_in_the_code_that_the_model_answers_from_P3(tmp_path: Path) -> None:
    """Code that the model took for something else, and was shown before, has the same name."""
    files = {
        "src/retry.py": "def retry(times):\n    log(hold_on)\n    return times\n",
        "src/guard.py": "def suspend(times):\n    hold_on(times)\n    return times\n",
    }
    said = found("The number of times is kept by hold_on.", "")
    trial = Trial(tmp_path, [said, *[NOT_SHOWN] * 4], files=files, takes_tools=False)
    trial.model.chance = lambda prompt: 0.7 if "suspend" in text_of(prompt) else 0.3
    outcome = await trial.run("What keeps the number of times of a retry?")
    assert outcome.error is None and "unverified" not in outcome.facts
    assert "src/guard.py:2" in outcome.output and "src/retry.py:2" not in outcome.output


@pytest.mark.parametrize(("second", "is_accepted"), [("NO_MORE", True), ("ITEMS_LEFT", False)])
async def test_name_that_the_model_gives_twice_from_other_code_counts_and_is_marked_P8(
    tmp_path: Path, second: str, is_accepted: bool
) -> None:
    """Shown the lines alone, the model takes neither for the answer, but says the same of both."""
    files = {
        **{f"src/retry_{name}.py": f"def retry_{name}(skip):\n    return skip\n" for name in "abcdefg"},
        "src/retry.py": "def retry(skip):\n    if env[NO_MORE]:\n        return skip\n",
        "src/guard.py": f"def freeze_state(retry):\n    return env[{second}] and skip(retry)\n",
    }
    script = [
        found("NO_MORE has a retry skipped.", "def retry(skip):"),
        found(f"{second} has a retry skipped.", f"return env[{second}] and skip(retry)"),
    ]
    trial = Trial(tmp_path, script, files=files, takes_tools=False)
    trial.model.words = ["freeze_it"]
    looked: list[str] = []

    def chance(prompt: Prompt) -> float:
        about = next((name for name in ("src/retry.py", "src/guard.py") if name in text_of(prompt)), "")
        looked.append(about)
        return 0.3 if not about else 0.45 if looked.count(about) == 1 else 0.42

    trial.model.chance = chance
    outcome = await trial.run("What has a retry skipped?")
    assert len(trial.answer_prompts) == 2
    if is_accepted:
        assert outcome.error is None and outcome.facts["unverified"] == NOTHING_STANDS_OUT
        assert "NO_MORE" in in_words(outcome.output) and NOT_CERTAIN in outcome.output
    else:
        assert isinstance(outcome.error, Unverified) or outcome.output.startswith("Not found")


async def test_code_that_stands_out_is_taken_for_the_answer_P3(tmp_path: Path) -> None:
    """Small models judge one excerpt well, so its words need not be those of the question."""
    said = found("`freeze_state` returns a frozenset.", "return frozenset(retry)")
    files = {**RETRIES, "src/guard.py": "def freeze_state(retry):\n    return frozenset(retry)\n"}
    question = "How is the outcome of a retry kept from being changed by callers?"
    for chance, is_accepted in ((0.65, True), (0.4, False)):
        folder = tmp_path / str(chance)
        folder.mkdir()
        trial = Trial(folder, [said, *[NOT_SHOWN] * 4], files=files, takes_tools=False)
        trial.model.chance = lambda prompt, chance=chance: (
            chance if "freeze_state" in text_of(prompt) else 0.3
        )
        outcome = await trial.run(question)
        assert ("(src/guard.py:2" in outcome.output) is is_accepted
        assert outcome.output.startswith("Not found") is not is_accepted


async def test_place_that_does_not_stand_out_is_hedged_and_names_its_rivals_P8(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path, [found("`retry_a` calls `a`.", "return a(retry)")], files=RETRIES, takes_tools=False
    )
    trial.model.chance = 0.72
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and "(src/retry_a.py:" in outcome.output
    assert outcome.output.endswith(
        f"{NOT_CERTAIN} It may also be src/retry_b.py:1 (retry_b) or src/retry_c.py:1 (retry_c)."
    )
    assert outcome.facts["unverified"] == NOTHING_STANDS_OUT


async def test_place_that_stands_out_is_named_although_the_model_cannot_copy_a_line_of_it_P8(
    tmp_path: Path,
) -> None:
    """The model's yes finds code better than its words explain it. The place alone answers "where"."""
    files = {**RETRIES, "src/retry_c.py": "def retry_c(retry):\n    return dispatch_now(retry)\n"}
    reply = json.dumps({"quote": "no such line", "answer": "It goes to `dispatch_now`.", "shown": True})
    trial = Trial(tmp_path, [reply], files=files, takes_tools=False)
    trial.model.chance = likely("def retry_c", 0.54)
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and outcome.facts["unverified"] == NOTHING_STANDS_OUT
    assert outcome.output == (
        f"{NOT_CERTAIN} The likeliest place is src/retry_c.py:1 (retry_c): `def retry_c(retry):`. "
        "It may also be src/retry_a.py:1 (retry_a) or src/retry_b.py:1 (retry_b)."
    )
    assert len(trial.answer_prompts) == 1, "the model is not asked for another answer"


async def test_place_that_stands_out_is_looked_at_again_if_the_model_makes_up_an_answer_P3(
    tmp_path: Path,
) -> None:
    made_up = found("The RetryManager does it.", "class RetryManager:")
    trial = Trial(tmp_path, [made_up] * 4, files=RETRIES, takes_tools=False)
    trial.model.rephrased = "Which function invokes the retry handler?"
    trial.model.chance = likely("def retry_c", 0.54)
    outcome = await trial.run("Where is a retry called?")
    assert outcome.output.startswith(NOTHING_FOUND) and "likeliest" not in outcome.output
    assert number_of_looks(trial) > len(RETRIES)


@pytest.mark.parametrize(
    ("question", "is_quoted"),
    [
        ("Where is a retry called?", False),
        ("How is a retry called?", True),
        ("Is a retry called?", False),
        ("How many times is a retry called?", True),
    ],
)
async def test_no_place_is_named_that_does_not_stand_out_P3(
    tmp_path: Path, question: str, is_quoted: bool
) -> None:
    """Its code is quoted below an honest "not found", and nothing is claimed of it."""
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.chance = lambda prompt: 0.36 if "def retry_c" in text_of(prompt) else 0.3
    outcome = await trial.run(question)
    assert outcome.error is None and trial.answer_prompts == []
    assert outcome.output.startswith("Not found") and "likeliest" not in outcome.output
    assert ("2:     return c(retry)" in outcome.output.partition(QUOTED_HEADING)[2]) is is_quoted


@pytest.mark.parametrize(
    ("question", "is_marked"),
    [
        ("Where is a retry called?", False),
        ("How is a retry called?", True),
        ("Is there a retry helper?", True),
    ],
)
async def test_explanation_or_yes_needs_more_certainty_than_a_place_P8(
    tmp_path: Path, question: str, is_marked: bool
) -> None:
    reply = found("`retry_c` calls `c` with a retry.", "return c(retry)")
    trial = Trial(tmp_path, [reply], files=RETRIES, takes_tools=False)
    trial.model.chance = likely("def retry_c", 0.54)
    outcome = await trial.run(question)
    assert outcome.error is None and "(src/retry_c.py:" in outcome.output
    assert ("unverified" in outcome.facts) is is_marked


async def test_place_is_not_named_if_the_model_makes_up_or_denies_an_answer_P3(tmp_path: Path) -> None:
    for said, is_error in (
        (found("The RetryManager does it.", "class RetryManager:"), True),
        (NOT_SHOWN, False),
    ):
        folder = tmp_path / str(is_error)
        folder.mkdir()
        outcome = await weak(folder, *[said] * 9).run("How are the times of a retry counted?")
        assert isinstance(outcome.error, Unverified) is is_error
        assert "likeliest" not in outcome.output and QUOTED_HEADING not in outcome.output


async def test_block_further_down_in_a_long_definition_is_found(tmp_path: Path) -> None:
    """Only its beginning is shown at first, and does not look like the answer."""
    steps = [f"    step_{number}(retry)\n" for number in range(60)]
    steps[45] = "    swap_files(retry, 'new', 'old')\n"
    files = {**RETRIES, "src/long.py": "def shrink(retry):\n" + "".join(steps)}
    said = found("`swap_files` puts the new one in place of the old.", "swap_files(retry, 'new', 'old')")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False)
    trial.model.chance = lambda prompt: 0.75 if "swap_files" in text_of(prompt) else 0.3
    outcome = await trial.run("Where does shrink swap the files of a retry?")
    assert outcome.error is None and "(src/long.py:47, in shrink at src/long.py:1)" in outcome.output
    assert "unverified" not in outcome.facts


async def test_rivals_are_other_definitions(tmp_path: Path) -> None:
    """Blocks of one long definition are no alternatives to each other."""
    reply = json.dumps({"quote": "no such line", "answer": "It calls `step_1`.", "shown": True})
    trial = Trial(tmp_path, [reply], files=LONG, takes_tools=False)
    trial.model.chance = lambda prompt: 0.53 if "step_" in text_of(prompt) else 0.3
    outcome = await trial.run("Where does shrink step a retry?")
    assert "The likeliest place is src/long.py:" in outcome.output
    assert outcome.output.partition("It may also be")[2].count("src/retry_") == 2


async def test_failed_look_at_a_block_does_not_undo_the_looks_before_P8(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [found("It calls step_1.", "step_1(retry)")], files=LONG, takes_tools=False)

    def chance(prompt: Prompt) -> float:
        if "step_30" in text_of(prompt):
            raise ModelFailed("busy")
        return 0.3

    trial.model.chance = chance
    outcome = await trial.run("Where does shrink step a retry?")
    assert trial.answer_prompts == [] and outcome.output.startswith("Not found in the code")


async def test_no_code_is_quoted_if_none_is_likely(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.chance = 0.3
    outcome = await trial.run("How is a retry called?")
    assert outcome.output.startswith("Not found") and QUOTED_HEADING not in outcome.output


async def test_quoted_code_is_short_even_if_its_lines_are_long_P4(tmp_path: Path) -> None:
    lines = "".join(f"    call_{n}(retry, '{'x ' * 120}')\n" for n in range(16))
    files = {**RETRIES, "src/wide.py": f"def count_retry(retry):\n{lines}"}
    said = found("`count_retry` makes calls with the retry.", "def count_retry(retry):")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False)
    trial.model.chance = lambda prompt: 0.8 if "count_retry" in text_of(prompt) else 0.3
    outcome = await trial.run("How does count_retry count a retry?")
    quoted = outcome.output.partition(QUOTED_HEADING)[2]
    assert quoted and estimate_tokens(quoted) <= 600


async def test_value_of_a_name_in_code_that_was_not_shown_before_is_used_P3(tmp_path: Path) -> None:
    files = {
        "src/retry.py": "def retry_delay(retry):\n    sleep(PAUSE_S)\n    return retry\n",
        "src/limits.py": "import os\n\n\nOTHER = os\nPAUSE_S = 30\nTHIRD = os\n",
    }
    said = found("The delay of a retry is PAUSE_S.", "sleep(PAUSE_S)")
    trial = Trial(tmp_path, [said, *[NOT_SHOWN] * 3], files=files, takes_tools=False)
    trial.model.chance = 0.85
    outcome = await trial.run("How long is the delay of a retry?")
    assert outcome.error is None and "`PAUSE_S = 30` (src/limits.py:5)" in outcome.output


async def test_number_is_looked_up_by_the_name_that_the_model_gives_for_it_P3(tmp_path: Path) -> None:
    """The model may know the number, or make one up. What the code says is told."""
    files = {
        "src/retry.c": "int retry_delay(int retry) {\n    sleep(PAUSE_S);\n    return retry;\n}\n",
        "src/limits.c": "int other;\n\n\nint more;\n#define PAUSE_S 30\nint third;\n",
    }
    for number in ("30", "45"):
        folder = tmp_path / number
        folder.mkdir()
        said = found(f"The delay of a retry is {number} seconds, as PAUSE_S says.", "sleep(PAUSE_S)")
        trial = Trial(folder, [said, *[NOT_SHOWN] * 3], files=files, takes_tools=False)
        trial.model.chance = 0.85
        outcome = await trial.run("How long is the delay of a retry?")
        assert outcome.error is None and "45" not in outcome.output
        assert "src/limits.c:5" in outcome.output.partition(NEAREST)[0]


async def test_number_that_the_model_makes_up_is_refused_if_its_names_have_several_values_P3(
    tmp_path: Path,
) -> None:
    files = {
        "src/retry.c": "int retry_delay(int retry) {\n    sleep(PAUSE_S);\n    return retry;\n}\n",
        "src/limits.c": "int other;\n#define PAUSE_S 30\nint more;\n\nint third;\n#define PAUSE_S 60\n",
    }
    said = found("The delay of a retry is 45 seconds, as PAUSE_S says.", "sleep(PAUSE_S)")
    trial = Trial(tmp_path, [said, *[NOT_SHOWN] * 3], files=files, takes_tools=False)
    trial.model.chance = 0.85
    outcome = await trial.run("How long is the delay of a retry?")
    assert outcome.error is not None and outcome.error.code == "unverified"


async def test_value_whose_code_has_other_words_counts_if_a_look_at_its_lines_confirms_it(
    tmp_path: Path,
) -> None:
    files = {**RETRIES, "src/limits.py": "# Larger ones are refused.\nMAX_LENGTH = 4000\nNEXT = 1\n"}
    for lines_chance, is_accepted in ((0.6, True), (0.2, False)):
        folder = tmp_path / str(lines_chance)
        folder.mkdir()
        said = found("It is refused from MAX_LENGTH = 4000 on.", "MAX_LENGTH = 4000")
        trial = Trial(folder, [said, *[NOT_SHOWN] * 4], files=files, takes_tools=False)

        def chance(prompt: Prompt, trial: Trial = trial, lines_chance: float = lines_chance) -> float:
            if "MAX_LENGTH" not in text_of(prompt):
                return 0.3
            return lines_chance if trial.answer_prompts else 0.45

        trial.model.chance = chance
        outcome = await trial.run("From which length on does a large retry get an error?")
        assert ("src/limits.py:2" in outcome.output.partition(NEAREST)[0]) is is_accepted
        assert not is_accepted or outcome.facts["unverified"] == NOTHING_STANDS_OUT


async def test_name_of_the_cited_definition_is_not_said_by_the_model_P8(tmp_path: Path) -> None:
    """The second answer names something else; only the clause on its place has the first one's name."""
    files = {
        **{f"src/retry_{name}.py": f"def retry_{name}(skip):\n    return skip\n" for name in "abcdefg"},
        "src/retry.py": "def retry(skip):\n    if freeze_state(skip):\n        return skip\n",
        "src/guard.py": "def freeze_state(retry):\n    return env[ITEMS_LEFT] and skip(retry)\n",
    }
    script = [
        found("freeze_state has a retry skipped.", "if freeze_state(skip):"),
        found("ITEMS_LEFT has a retry skipped.", "return env[ITEMS_LEFT] and skip(retry)"),
    ]
    trial = Trial(tmp_path, script, files=files, takes_tools=False)
    trial.model.words = ["freeze_it"]
    looked: list[str] = []

    def chance(prompt: Prompt) -> float:
        about = next((name for name in ("src/retry.py", "src/guard.py") if name in text_of(prompt)), "")
        looked.append(about)
        return 0.3 if not about else 0.45 if looked.count(about) == 1 else 0.42

    trial.model.chance = chance
    outcome = await trial.run("What has a retry skipped?")
    assert len(trial.answer_prompts) == 2
    assert isinstance(outcome.error, Unverified) or outcome.output.startswith("Not found")


async def test_answer_that_stands_out_but_not_clearly_names_its_rivals_P8(tmp_path: Path) -> None:
    files = {**RETRIES, "tests/test_retry.py": "def test_retry(retry):\n    assert a(retry)\n"}
    for chance, rivals in ((0.9, False), (0.62, True)):
        folder = tmp_path / str(chance)
        folder.mkdir()
        said = found("`retry_a` calls `a`.", "return a(retry)")
        trial = Trial(folder, [said], files=files, takes_tools=False)
        trial.model.chance = lambda prompt, chance=chance: chance if "def retry_a" in text_of(prompt) else 0.5
        outcome = await trial.run("Where is a retry called?")
        assert "(src/retry_a.py:" in outcome.output and "unverified" not in outcome.facts
        assert ("It may also be src/retry_" in outcome.output) is rivals
        assert NOT_CERTAIN not in outcome.output and "tests/" not in outcome.output


async def test_nothing_found_lists_the_likeliest_places_first(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.chance = lambda prompt: 0.4 if "def retry_c" in text_of(prompt) else 0.3
    outcome = await trial.run("Where is a retry called?")
    assert outcome.output.startswith("Not found")
    assert outcome.output.partition(NEAREST)[2].startswith("\n- src/retry_c.py:1:")


async def test_model_that_cannot_judge_code_is_not_asked_to_and_its_answer_is_hedged_P8(
    tmp_path: Path,
) -> None:
    trial = weak(tmp_path, found("`retry` returns the number of times.", "def retry(times):"))
    trial.skills = ModelSkills(calls_tools=False, follows_schema=True, judges_code=False)
    outcome = await trial.run("How is a retry carried out?")
    assert not [prompt for prompt in trial.prompts if prompt.alternatives]
    assert outcome.error is None and outcome.facts["unverified"] == NOTHING_STANDS_OUT
    assert in_words(outcome.output).endswith(NOT_CERTAIN)


@pytest.mark.parametrize("chance", [0.2, 0.45])
async def test_model_is_not_asked_if_no_code_is_likely_to_answer_P8(tmp_path: Path, chance: float) -> None:
    """A small model answers from whatever it is shown. That nothing was found is an honest answer."""
    trial = weak(tmp_path, found("`retry` returns the number of times.", "def retry(times):"))
    trial.model.chance = chance
    outcome = await trial.run()
    assert trial.answer_prompts == []
    assert outcome.error is None and outcome.output.startswith("Not found in the code that was read.")
    assert NEAREST in outcome.output and "- src/app.py:4: `def retry(times):`" in outcome.output


@pytest.mark.parametrize(
    ("lines_chance", "is_accepted"), [(0.5, True), (0.4, False)], ids=["confirmed", "not confirmed"]
)
async def test_value_in_doubt_counts_only_if_the_model_takes_its_lines_for_the_answer_P3(
    tmp_path: Path, lines_chance: float, is_accepted: bool
) -> None:
    """All code is about as likely. Shown the cited lines alone, the model sees its mistake."""
    trial = weak(tmp_path, found("The DELAY between tries is 42.", "DELAY = 42"), *[NOT_SHOWN] * 4)

    def chance(prompt: Prompt) -> float:
        return lines_chance if trial.answer_prompts else 0.56

    trial.model.chance = chance
    outcome = await trial.run("What is the delay to wait between tries?")
    assert ("src/wait.py:1" in outcome.output.partition(NEAREST)[0]) is is_accepted
    if not is_accepted:
        assert any(event.startswith(UNCONFIRMED) for event in trial.events)
        assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND), (
            "the model itself denies it"
        )


async def test_model_that_says_neither_yes_nor_no_must_answer_twice_P3(tmp_path: Path) -> None:
    line = json.dumps({"line": "def retry(times):"})
    for again, doubt in (("It is `retry` that returns them.", ""), ("`connect` does it.", SAYS_OTHERWISE)):
        folder = tmp_path / (doubt or "agrees")
        folder.mkdir()
        said = ["`retry` returns the number of times.", line, again, *[NOT_SHOWN] * 4]
        trial = Trial(folder, said, files=FILES, takes_tools=False)
        trial.model.says = "perhaps"
        outcome = await trial.run()
        looks = [prompt for prompt in trial.prompts if prompt.alternatives]
        assert len(looks) == MAX_SILENT_LOOKS  # it is not asked again
        if doubt:
            assert any(event.startswith(doubt) for event in trial.events)
            assert (
                NEAREST in outcome.output and f"src/app.py:4: `def retry(times):`{CHOSEN}" in outcome.output
            )
        else:
            assert outcome.error is None and "(src/app.py:4)" in outcome.output


async def test_model_answers_from_the_code_that_it_takes_for_the_answer(tmp_path: Path) -> None:
    """It chooses badly among several excerpts, and judges one of them well."""
    script = [found("`retry_d` calls `d`.", "return d(retry)")]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False)
    trial.model.chance = lambda prompt: 0.7 if "return d(" in text_of(prompt) else 0.4
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and "src/retry_d.py" in outcome.output
    [asked] = trial.answer_prompts
    code = text_of(asked)
    assert code.count("def retry_") == 1 and "def retry_d" in code


async def test_looks_at_code_are_no_steps_but_their_tokens_count_P2(tmp_path: Path) -> None:
    script = [found("`retry_a` calls `a`.", "return a(retry)")]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False)
    trial.model.chance = 0.8
    outcome = await trial.run("Where is a retry called?")
    looks = [prompt for prompt in trial.prompts if prompt.alternatives]
    assert len(looks) == len(RETRIES), "a place needs rivals, however likely it is"
    assert outcome.usage["steps"] == len(trial.prompts) - len(looks)
    assert outcome.usage["tokens"] > sum(estimate_tokens(text_of(look)) for look in looks)


async def test_yes_in_doubt_does_not_count_P3(tmp_path: Path) -> None:
    """What does not exist is seldom called likely, and a wrong yes misleads most."""
    for chance, is_asked in ((0.66, False), (0.72, True)):
        folder = tmp_path / str(chance)
        folder.mkdir()
        trial = weak(folder, found("Yes, `retry` returns its times.", "return times"), *[NOT_SHOWN] * 4)

        def look(prompt: Prompt, trial: Trial = trial, chance: float = chance) -> float:
            return 0.5 if trial.answer_prompts else chance

        trial.model.chance = look
        outcome = await trial.run("Does a retry return its times?")
        assert "src/app.py:5" not in outcome.output.partition(NEAREST)[0]
        assert bool(trial.answer_prompts) is is_asked
        assert any(event.startswith(UNCONFIRMED) for event in trial.events) is is_asked


async def test_server_that_tells_no_chances_is_taken_at_its_word_P3(tmp_path: Path) -> None:
    """LM Studio reports none. Code that gets the only yes stands out."""
    script = [found("`retry_d` calls `d`.", "return d(retry)")]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False)
    trial.model.says = lambda prompt: "Yes" if "return d(" in text_of(prompt) else "No"
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and "src/retry_d.py" in outcome.output
    [asked] = trial.answer_prompts
    assert text_of(asked).count("def retry_") == 1
    silent = weak(tmp_path, found("`retry` returns the number of times.", "def retry(times):"))
    silent.model.chance, silent.model.says = None, "no"
    outcome = await silent.run()
    assert silent.answer_prompts == [] and outcome.output.startswith("Not found in the code that was read.")


async def test_value_of_a_name_is_looked_up_where_it_is_given_P3(tmp_path: Path) -> None:
    """The code that answers often has only the name of a limit, and the name of another one as its value."""
    files = {
        "src/parse.py": "def parse_quotes(s, max_level):\n    if s.depth >= max_level:\n        x()\n",
        "src/run.py": "from src.parse import parse_quotes\n\nparse_quotes(state, max_level=MAX_LEVEL)\n",
        "src/limits.py": "MAX_LEVEL = 20\n",
    }
    said = found("Quotes are parsed until the depth is max_level.", "if s.depth >= max_level:")
    outcome = await Trial(tmp_path, [said], files=files, takes_tools=False).run(
        "How deep may parsed quotes be before it stops?"
    )
    assert outcome.error is None
    assert in_words(outcome.output) == (
        "Quotes are parsed until the depth is max_level: `MAX_LEVEL = 20` (src/limits.py:1). "
        f"src/parse.py:2: `if s.depth >= max_level:` {NOT_CERTAIN}"
    )


async def test_honest_miss_says_what_was_read(tmp_path: Path) -> None:
    trial = weak(tmp_path, *[NOT_SHOWN] * 8)
    outcome = await trial.run()
    assert outcome.error is None
    assert outcome.output.startswith("Not found in the code that was read.")
    assert outcome.usage["steps"] <= 5


@pytest.mark.parametrize(
    "answer",
    [
        found("The RetryManager class does it.", "class RetryManager:"),
        found("It retries 100 times.", ""),
        found("Yes.", ""),
        "I think so.",
        "[]",
    ],
)
async def test_invented_answer_ends_unverified(tmp_path: Path, answer: str) -> None:
    """P3, P8: what names nothing that was shown is no success."""
    outcome = await weak(tmp_path, *[answer] * 9).run()
    assert isinstance(outcome.error, Unverified)


async def test_quote_from_elsewhere_gives_no_place(tmp_path: Path) -> None:
    trial = weak(tmp_path, found("`retry` does it, with times.", "raise NotImplementedError"))
    outcome = await trial.run("Where is it handled that something is tried again, as in retry?")
    assert "NotImplementedError" not in outcome.output


async def test_model_that_answers_without_looking_is_asked_again_with_code(tmp_path: Path) -> None:
    """P3: a model that takes tools but does not use them."""
    guess = "The AuthorizationMiddleware handles it."
    trial = Trial(tmp_path, [guess, found("`retry` takes times.", "def retry(times):")], files=FILES)
    trial.model.chance = 0.85
    outcome = await trial.run()
    assert outcome.output == "`retry` takes times (src/app.py:4). `def retry(times):`"
    assert any("answers from code that our search finds" in event for event in trial.events)


async def test_answer_without_a_look_is_replaced_if_the_search_finds_nothing(tmp_path: Path) -> None:
    """P3, P8: what occurs nowhere was not found, whatever the model says."""
    trial = Trial(tmp_path, ["The UnicornManager does it."] * 5, files=FILES)
    outcome = await trial.run("Which unicorn gallops?")
    assert (outcome.error, outcome.output) == (
        None,
        "Not found: no code of this project contains `unicorn` or `gallops`.",
    )


async def test_word_that_is_only_told_before_a_question_decides_nothing(tmp_path: Path) -> None:
    """Who asks tells of things that the code need not know."""
    for told, is_asked in (("My editor is slow.", True), ("I use SQLite.", False)):
        folder = tmp_path / told
        folder.mkdir()
        trial = weak(folder, *[NOT_SHOWN] * 4)
        outcome = await trial.run(f"{told} Does a retry return its times?")
        assert bool(trial.prompts) is is_asked
        assert ("contains `SQLite`" in outcome.output) is not is_asked


@pytest.mark.parametrize(
    ("task", "absent"),
    [
        ("Is there support for HTTP/2?", "HTTP/2"),
        ("Is there code that encrypts a retry?", "encrypts"),
        ("Can a retry be stored in SQLite?", "SQLite"),
        ("Where are gift vouchers redeemed?", "vouchers"),
    ],
)
async def test_what_occurs_nowhere_is_not_found_without_asking_the_model(
    tmp_path: Path, task: str, absent: str
) -> None:
    trial = weak(tmp_path, found("`retry` does it.", "def retry(times):"))
    outcome = await trial.run(task)
    assert outcome.error is None and trial.prompts == []
    assert (
        outcome.output.startswith("Not found: no code of this project contains") and absent in outcome.output
    )


async def test_refused_answer_is_not_found_if_a_word_of_the_question_occurs_nowhere(tmp_path: Path) -> None:
    claim = found("A sound is played by `Mixer`.", "Mixer().play()")
    outcome = await weak(tmp_path, claim, claim).run("Where is a sound played after the last retry?")
    assert outcome.error is None and outcome.output.startswith("Not found in the code that was read.")
    assert "No code of this project contains" in outcome.output and "`sound`" in outcome.output
    known = await weak(tmp_path / "b", claim, claim).run("Where is the retry?")
    assert isinstance(known.error, Unverified), "all words occur, so nothing says that it is absent"


@pytest.mark.parametrize(
    "task", ["Is there a retry helper?", "How is a retry carried out?", "Does it retry?"]
)
async def test_words_that_only_ask_decide_nothing(tmp_path: Path, task: str) -> None:
    trial = weak(tmp_path, found("`retry` does it, with `times`.", "def retry(times):"))
    output = in_words((await trial.run(task)).output)
    assert output.startswith("`retry` does it, with `times` (src/app.py:4). `def retry(times):`")


async def test_both_parts_of_a_question_are_answered_from_the_same_code(tmp_path: Path) -> None:
    first = found("`wait_between_tries` returns DELAY.", "    return DELAY")
    second = found("DELAY is 42.", "DELAY = 42")
    trial = weak(tmp_path, first, second)
    outcome = await trial.run("Which function waits between tries, and how long is the delay?")
    assert in_words(outcome.output) == (
        "`wait_between_tries` returns DELAY (src/wait.py:4). src/wait.py:5: `return DELAY` "
        "DELAY is 42 (src/wait.py:1). `DELAY = 42`"
    )
    code, again = (text_of(prompt).partition("Question:")[0] for prompt in trial.answer_prompts)
    assert again.startswith(code.removesuffix("Question:")[:-2])


async def test_explanation_is_followed_by_the_code_behind_it_P3(tmp_path: Path) -> None:
    """A small model explains code worse than it finds it. Its reader can do better."""
    body = "".join(f"    step_{number}(times)\n" for number in range(30))
    files = {"src/app.py": f"def retry(times):\n{body}"}
    said = found("`retry` calls step_12 with the times.", "step_12(times)")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False)
    trial.model.chance = 0.85
    words, _, code = (await trial.run("How is a retry carried out?")).output.partition(QUOTED_HEADING)
    assert "src/app.py:14" in words
    path, *lines = code.strip().splitlines()
    assert path == "src/app.py:" and "14:     step_12(times)" in lines
    assert lines[0] == "6:     step_4(times)" and lines[-1] == "22:     step_20(times)"


async def test_code_behind_both_parts_of_an_answer_is_quoted_once(tmp_path: Path) -> None:
    first = found("`wait_between_tries` returns DELAY.", "    return DELAY")
    trial = weak(tmp_path, first, found("DELAY is 42.", "DELAY = 42"))
    output = (await trial.run("How does it wait between tries, and how long is the delay?")).output
    assert output.count("1: DELAY = 42") == output.count("5:     return DELAY") == 1
    assert output.count(QUOTED_HEADING) == 1


@pytest.mark.parametrize("task", ["Where is a retry carried out?", "Is there a retry helper?"])
async def test_place_and_yes_stay_short(tmp_path: Path, task: str) -> None:
    """P4: a place has its line, and a yes its place."""
    trial = weak(tmp_path, found("`retry` does it, with `times`.", "def retry(times):"))
    assert QUOTED_HEADING not in (await trial.run(task)).output


async def test_likeliest_code_of_a_part_without_an_answer_is_quoted_P8(tmp_path: Path) -> None:
    first = found("`wait_between_tries` returns DELAY.", "    return DELAY")
    trial = Trial(tmp_path, [first], files=FILES, takes_tools=False)

    def chance(prompt: Prompt) -> float:
        code, _, question = text_of(prompt).partition("Question: ")
        if "wait_between" in code and "between tries" in question:
            return 0.85
        return 0.37 if "STRIPES" in code else 0.3

    trial.model.chance = chance
    outcome = await trial.run("Which function waits between tries, and how many stripes has the zebra?")
    answer, _, code = outcome.output.partition(QUOTED_HEADING)
    assert "(src/wait.py:4)" in answer and "Not found: How many stripes has the zebra?" in answer
    assert "The likeliest code for that is src/zebra.py:" in answer and "return STRIPES" in code


async def test_part_that_is_not_shown_is_named(tmp_path: Path) -> None:
    first = found("`wait_between_tries` returns DELAY.", "    return DELAY")
    trial = weak(tmp_path, first, NOT_SHOWN, NOT_SHOWN)
    outcome = await trial.run("Which function waits between tries, and how long is the delay?")
    assert in_words(outcome.output).endswith("Not found: How long is the delay?")


async def test_second_part_about_an_unknown_first_one_is_not_asked(tmp_path: Path) -> None:
    """P3, P8: what decides between two functions that were not found is a guess."""
    trial = weak(tmp_path, NOT_SHOWN, NOT_SHOWN)
    outcome = await trial.run(
        "Which two functions wait, and how do the times of a retry decide between them?"
    )
    assert outcome.error is None and outcome.output.startswith("Not found in the code")
    assert not any("Question: How do the times" in text_of(prompt) for prompt in trial.prompts)


async def test_second_part_with_a_subject_of_its_own_is_answered_without_the_first(tmp_path: Path) -> None:
    stripes = found("STRIPES are 42.", "STRIPES = 42")
    trial = Trial(tmp_path, [stripes], files=FILES, takes_tools=False)

    def chance(prompt: Prompt) -> float:
        code, _, question = text_of(prompt).partition("Question: ")
        return 0.9 if "STRIPES = 42" in code and "zebra" in question else 0.3

    trial.model.chance = chance
    outcome = await trial.run("Which function waits between tries, and how many stripes has the zebra?")
    told = in_words(outcome.output)
    assert outcome.error is None and told.startswith("STRIPES are 42 (src/zebra.py:1)")
    assert "Not found: Which function waits between tries?" in told
    assert outcome.facts["unverified"] == NOTHING_STANDS_OUT, "it may belong to what was not found"


async def test_number_that_no_shown_line_has_is_refused(tmp_path: Path) -> None:
    """P3: a value is read, not remembered."""
    guess = found("`wait_between_tries` waits 100 seconds.", "def wait_between_tries():")
    outcome = await weak(tmp_path, guess, guess).run("How long is the delay between tries?")
    assert isinstance(outcome.error, Unverified) and "100" in outcome.error.message


async def test_code_corrects_a_number_that_a_model_makes_up_for_a_name_P3(tmp_path: Path) -> None:
    guess = found("`wait_between_tries` waits 100 seconds, see DELAY.", "    return DELAY")
    outcome = await weak(tmp_path, guess).run("How long is the delay between tries?")
    assert outcome.error is None and in_words(outcome.output).startswith("`DELAY = 42` (src/wait.py:1)")
    assert "100" not in outcome.output


async def test_failed_calls_are_no_looks(tmp_path: Path) -> None:
    script = [*(calls("read_file", path=f"gone{n}.py") for n in range(3)), NOT_SHOWN]
    trial = Trial(tmp_path, script, files=FILES)
    await trial.run()
    assert any("does not manage to call tools" in event for event in trial.events)


async def test_order_that_asks_nothing_needs_no_evidence(tmp_path: Path) -> None:
    outcome = await Trial(tmp_path, ["Retry on failure"], files=FILES).run("Write a title for a commit.")
    assert outcome.error is None


async def test_places_in_json_fields_are_checked_P3(tmp_path: Path) -> None:
    invented, right = '{"file": "example.txt", "line": 10}', '{"file": "src/app.py", "line": 4}'
    trial = Trial(tmp_path, [invented, invented, right], files=FILES, schema=PLACE_FORM)
    outcome = await trial.run()
    assert (outcome.error, json.loads(outcome.output)) == (None, json.loads(right))
    for index, claim in enumerate(
        (
            invented,
            '{"file": "src/app.py", "line": 99}',
            '{"file": "src/app.py", "line": 99.0}',
            '{"file": "src/app.py", "line": 0}',
            '{"file": "src/net.py", "line": 1}',
        )
    ):
        outcome = await Trial(tmp_path / str(index), [claim] * 9, files=FILES, schema=PLACE_FORM).run()
        assert isinstance(outcome.error, Unverified), claim


async def test_form_for_a_place_is_not_filled_in_if_nothing_was_found_P3(tmp_path: Path) -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"file": {"type": "string"}, "line": {"type": "integer"}, "what": {"type": "string"}},
        "required": ["file", "line", "what"],
    }
    form = '{"file": "src/app.py", "line": 4, "what": "Not found"}'
    trial = Trial(tmp_path, [NOT_SHOWN, form], files=FILES, schema=schema, takes_tools=False)
    outcome = await trial.run()
    assert isinstance(outcome.error, Unverified) and "not in what was found" in outcome.error.message
    assert outcome.output.startswith(NOTHING_FOUND) and outcome.output.count("- src/app.py:4: ") == 1
    assert len(trial.answer_prompts) == 2


async def test_absence_is_told_although_the_form_for_a_place_cannot_be_filled_in_P8(tmp_path: Path) -> None:
    form = '{"file": "src/app.py", "line": 4}'
    trial = Trial(tmp_path, [form] * 3, files=FILES, takes_tools=False, schema=PLACE_FORM)
    outcome = await trial.run("Does retry support HTTP/2?")
    assert isinstance(outcome.error, Unverified)
    assert outcome.output.startswith(f"{NOTHING_FOUND}: no code of this project contains `HTTP/2`.\n")
    assert NEAREST in outcome.output


async def test_answer_of_which_the_form_fails_is_told_with_its_doubt_P8(tmp_path: Path) -> None:
    script = [found("`retry_a` calls `a`.", "return a(retry)"), *[ModelFailed("busy")] * 3]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False, schema=PLACE_FORM)
    trial.model.chance = 0.72
    outcome = await trial.run("Where is a retry called?")
    assert isinstance(outcome.error, ModelFailed) and "(src/retry_a.py:1)" in outcome.output
    assert NOT_CERTAIN in outcome.output and NEAREST in outcome.output


async def test_form_is_not_filled_in_with_places_that_the_model_was_not_asked_about_P3(
    tmp_path: Path,
) -> None:
    trial = Trial(tmp_path, ['{"file": "src/app.py", "line": 4}'] * 3, schema=PLACE_FORM, takes_tools=False)
    trial.speed, trial.seconds = SLOW, 10.0
    outcome = await trial.run()
    assert isinstance(outcome.error, Unverified) and outcome.output.endswith("`def retry(times):`")
    assert trial.prompts == []


async def test_code_is_charged_to_the_budget_P2(tmp_path: Path) -> None:
    trial = weak(tmp_path, NOT_SHOWN)
    trial.spending = metered(files=1)
    await trial.run(TASK)
    assert "src/app.py" in text_of(trial.prompts[0]) and "src/wait.py" not in text_of(trial.prompts[0])


@pytest.mark.parametrize("context", [2_048, 4_096, 8_192])
async def test_code_fits_a_small_context_P2(tmp_path: Path, context: int) -> None:
    long = "def retry(times):\n" + "".join(
        f"    step_{n} = times * {n}  # one more step\n" for n in range(300)
    )
    trial = Trial(tmp_path, [NOT_SHOWN] * 9, files={"src/long.py": long}, takes_tools=False, context=context)
    outcome = await trial.run()
    assert outcome.error is None and outcome.usage["peak_tokens"] <= 0.3 * context


async def test_strong_model_gets_further_than_the_code_that_was_found(tmp_path: Path) -> None:
    """A model that calls tools well is not put on rails: it follows a name from file to file."""
    script = [
        calls("read_file", path="src/wait.py"),
        calls("search", pattern="STRIPES"),
        "A retry waits DELAY = 42 (src/wait.py:1), the same as STRIPES in src/zebra.py:1.",
    ]
    trial = Trial(tmp_path, script, files=FILES)
    outcome = await trial.run("How is a retry carried out, and does anything else have the same number?")
    assert outcome.error is None and "src/zebra.py:1" in outcome.output
    assert all(prompt.tools for prompt in trial.prompts) and outcome.usage["steps"] == 3
    assert "def retry(times):" in text_of(trial.prompts[0]), "it starts from the same code"


SLOW = ModelSpeed(50.0, 11.0)
ZEBRA_TASK = "Describe the zebra and its stripes."


async def test_model_that_is_too_slow_for_the_deadline_is_not_asked(tmp_path: Path) -> None:
    """P2, P8: the places that the search found, and one sentence why there is no more."""
    trial = weak(tmp_path, found("`retry` does it.", "def retry(times):"))
    trial.speed, trial.seconds = SLOW, 10.0
    outcome = await trial.run()
    assert outcome.error is None and trial.prompts == []
    assert outcome.output.startswith(TOO_SLOW) and "src/app.py:4" in outcome.output


@pytest.mark.parametrize("takes_tools", [False, True])
async def test_model_that_is_too_slow_is_not_asked_if_nothing_is_found_either_P2_P8(
    tmp_path: Path, takes_tools: bool
) -> None:
    trial = Trial(tmp_path, ["I do not know it."], takes_tools=takes_tools)
    trial.speed, trial.seconds = SLOW, 10.0
    outcome = await trial.run(ZEBRA_TASK)
    assert (outcome.error, outcome.output, trial.prompts) == (None, f"{TOO_SLOW} {NO_CODE_FOUND}", [])


async def test_model_that_is_too_slow_fills_in_no_form_P2(tmp_path: Path) -> None:
    """What is told instead stands in the first text of the form. A form without one ends at once."""
    said: dict[str, Json] = {"type": "object", "properties": {"said": {"type": "string"}}}
    for schema, task in itertools.product((said, PLACE_FORM), (TASK, ZEBRA_TASK)):
        trial = Trial(tmp_path, ["{}"] * 9, schema=schema, takes_tools=False)
        trial.speed, trial.seconds = SLOW, 10.0
        outcome = await trial.run(task)
        assert trial.prompts == [] and TOO_SLOW in outcome.output
        if schema is said:
            assert outcome.error is None and json.loads(outcome.output)["said"].startswith(TOO_SLOW)
        else:
            assert isinstance(outcome.error, Unverified) and "too slow" in outcome.error.message


async def test_deadline_keeps_what_the_search_found_while_a_model_loads_P2(tmp_path: Path) -> None:
    """A server may need minutes to load its model, before it answers the first request."""

    class Loading(Trial):
        async def _skills(self, seconds: float) -> ModelSkills:
            await asyncio.Event().wait()
            raise AssertionError("the model never loads")

    trial = Loading(tmp_path, [], seconds=0.5)
    outcome = await trial.run()
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.output == f"{NEAREST}\n- src/app.py:4: `def retry(times):`"


async def test_run_that_ends_before_any_look_lists_what_the_search_found_P5(tmp_path: Path) -> None:
    async def hangs(prompt: Prompt) -> str:
        await asyncio.Event().wait()
        raise AssertionError("the model never answers")

    trial = Trial(tmp_path, [hangs], files=FILES, takes_tools=False, seconds=0.5)
    trial.skills = ModelSkills(calls_tools=False, follows_schema=True, judges_code=False)
    outcome = await trial.run()
    assert isinstance(outcome.error, DeadlineExceeded)
    assert "src/app.py:4" in outcome.output


async def test_model_whose_context_holds_no_code_is_not_asked_P8(tmp_path: Path) -> None:
    files = {"src/app.py": f"def retry(times):\n    return {'times * ' * 40}1\n"}
    trial = Trial(tmp_path, [], files=files, takes_tools=False, context=512)
    outcome = await trial.run()
    assert outcome.error is None and outcome.output.startswith(TOO_SMALL.format(tokens=153))
    assert "src/app.py:1" in outcome.output and not trial.prompts


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("    return times", "`retry` returns `times` (src/app.py:4)."),
        (
            "    return DELAY",
            f"{NOT_CERTAIN} The likeliest place is src/app.py:4 (retry): `def retry(times):`. It may also be",
        ),
    ],
    ids=["it agrees", "it belongs to other code"],
)
async def test_copied_line_must_belong_to_the_code_that_the_answer_names(
    tmp_path: Path, line: str, output: str
) -> None:
    said = "`retry` returns `times`."
    copied = json.dumps({"line": line})
    trial = weak(tmp_path, said, copied, said, copied)
    outcome = await trial.run("Where is a retry handled between tries?")
    assert outcome.error is None and outcome.output.startswith(output)
    assert ("unverified" in outcome.facts) is output.startswith(NOT_CERTAIN)


async def test_yes_without_a_copied_line_needs_a_second_look(tmp_path: Path) -> None:
    """P3: a line that is chosen before the answer would suggest a "yes"."""
    said = json.dumps({"quote": "", "answer": "Yes, `retry` returns its times.", "shown": True})
    trial = weak(tmp_path, said, json.dumps({"line": "    return times"}))
    outcome = await trial.run("Does a retry return its times?")
    assert outcome.error is None and "src/app.py:5" in outcome.output
    assert [prompt.schema == LINE_SCHEMA for prompt in trial.prompts if not prompt.alternatives] == [
        False,
        True,
    ]


async def test_explanation_gets_a_second_round_with_the_names_of_the_first(tmp_path: Path) -> None:
    files = {
        **{
            f"src/retry_{name}.py": f"def retry_{name}(retry):\n    return backoff_plan(retry)\n"
            for name in "abc"
        },
        "src/plan.py": "def backoff_plan(n):\n    # pauses of a retry\n    return [2**i for i in range(n)]\n",
    }
    partial = json.dumps({"answer": "It calls `backoff_plan`.", "quote": "", "shown": False})
    right = found("`backoff_plan` returns `2**i` for each retry.", "return [2**i for i in range(n)]")
    trial = Trial(tmp_path, [partial, right], files=files, takes_tools=False)
    outcome = await trial.run("How is a retry carried out?")
    assert "def backoff_plan" not in text_of(trial.prompts[0]) and outcome.error is None
    assert "(src/plan.py:3, in backoff_plan at src/plan.py:1)." in outcome.output


async def test_looks_take_half_of_the_time_at_most_P2(tmp_path: Path) -> None:
    """A slow model looks at fewer places, and answers from the first ones if there is no time for any."""
    looks: dict[float, int] = {}
    for seconds in (26.0, 60.0, 600.0):
        folder = tmp_path / str(seconds)
        folder.mkdir()
        trial = Trial(folder, [NOT_SHOWN] * 4, files=RETRIES, takes_tools=False)
        trial.speed, trial.seconds, trial.model.chance = SLOW, seconds, 0.72
        await trial.run("Where is a retry called?")
        looks[seconds] = sum(prompt.alternatives > 0 for prompt in trial.prompts)
        read = sum(estimate_tokens(text_of(prompt)) for prompt in trial.prompts if prompt.alternatives)
        assert read / SLOW.prompt_tokens_s <= seconds / 2
        assert trial.answer_prompts
    assert looks[26.0] == 0 < looks[60.0] <= looks[600.0]


async def test_model_that_was_slow_long_ago_is_asked(tmp_path: Path) -> None:
    """A speed that was measured under load must not keep a model from being asked for ever."""
    trial = weak(tmp_path, found("`retry` does it.", "def retry(times):"))
    trial.speed, trial.seconds = replace(SLOW, is_old=True), 10.0
    assert (await trial.run()).error is None and len(trial.answer_prompts) == 1


async def test_model_that_holds_fewer_tools_than_the_agent_has_is_put_on_rails(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [found("`retry` returns `times`.", "def retry(times):")], files=FILES)
    trial.skills = ModelSkills(calls_tools=True, follows_schema=True, max_tools=1)
    outcome = await trial.run("How is a retry carried out?")
    assert outcome.error is None and not trial.prompts[0].tools


async def test_less_code_is_shown_if_time_is_short(tmp_path: Path) -> None:
    long = {"src/app.py": "def retry(times):\n" + "    wait(times, times, times, times)\n" * 60}
    sizes: list[int] = []
    for seconds in (25.0, 300.0):
        trial = Trial(tmp_path / str(seconds), [NOT_SHOWN], files=long, takes_tools=False)
        trial.speed, trial.seconds = SLOW, seconds
        await trial.run("How is a retry carried out?")
        sizes.append(text_of(trial.prompts[0]).count("wait(times"))
    assert 0 < sizes[0] < sizes[1]


async def test_place_that_exists_but_was_not_opened_is_marked_P3(tmp_path: Path) -> None:
    """A model may remember where a well-known project has something; that is no look."""
    answer = "`retry` is in src/app.py:4, and `connect` in src/net.py:1."
    outcome = await Trial(tmp_path, [answer], files=FILES).run()
    assert outcome.output == "`retry` is in src/app.py:4, and `connect` in src/net.py:1 [not opened]."
    assert outcome.notes == ("places that the agent has not opened: src/net.py:1",)
    seen = [calls("search", pattern="connect"), answer]
    assert (await Trial(tmp_path / "b", seen, files=FILES).run()).output == answer


async def test_number_that_an_answer_only_names_is_looked_up(tmp_path: Path) -> None:
    named = found("The delay between tries is DELAY.", "    return DELAY")
    outcome = await weak(tmp_path, named).run("How long is the delay between tries?")
    said = "The delay between tries is DELAY: `DELAY = 42` (src/wait.py:1)."
    assert in_words(outcome.output) == f"{said} src/wait.py:5: `return DELAY`"


async def test_answer_without_the_number_that_was_asked_for_is_refused(tmp_path: Path) -> None:
    vague = found("`wait_between_tries` waits for the specified delay.", "def wait_between_tries():")
    outcome = await weak(tmp_path, vague, vague).run("How long is the delay between tries?")
    assert isinstance(outcome.error, Unverified)


async def test_best_place_of_the_search_stands_beside_the_choice_of_the_model(tmp_path: Path) -> None:
    chosen = found("`test_retry` asserts that a retry works.", "    assert retry(3) == 3")
    outcome = await weak(tmp_path, chosen).run("Where is a retry carried out?")
    assert outcome.output == (
        "`test_retry` asserts that a retry works (tests/test_retry.py:1). "
        "The likeliest place is src/app.py:4 (retry). tests/test_retry.py:2: `assert retry(3) == 3`"
    )


@pytest.mark.parametrize(
    "task",
    ["Add a retry to SQLite. Where does it go?", "Can you write a retry for SQLite?", "retry in SQLite"],
)
async def test_task_to_build_something_is_not_answered_by_its_absence(tmp_path: Path, task: str) -> None:
    trial = weak(tmp_path, found("`retry` takes times.", "def retry(times):"))
    assert "Not found" not in (await trial.run(task)).output and len(trial.answer_prompts) == 1


def skills_of_the_project(body: str = "1. Retries are counted in TRIES.") -> SkillNotes:
    def read(name: str, file: str | None, first_line: int, tokens: int) -> str:
        if name != "mine":
            raise InvalidInput("there is no such skill")
        return "1. Rhyme the second line."

    return SkillNotes(index="Skills (read with use_skill): mine", bodies=(("retries", body),), read=read)


async def test_weak_model_gets_triggered_skills_and_memories_without_the_index(tmp_path: Path) -> None:
    """It has no tool to read a skill with, so it is told of those alone that come with the task."""
    trial = weak(tmp_path, found("`retry` returns the number of times.", "4: def retry(times):"))
    trial.told_skills, trial.memories = skills_of_the_project(), "Notes:\n> Retries were slow in May."
    outcome = await trial.run()
    assert outcome.output == "`retry` returns the number of times (src/app.py:4). `def retry(times):`"
    [asked] = trial.answer_prompts
    shown = text_of(asked)
    assert "1. Retries are counted in TRIES." in shown and "> Retries were slow in May." in shown
    assert "use_skill" not in shown
    assert trial.told_skills.given == ["retries"]
    assert not [note for note in outcome.notes if "skill" in note]


async def test_weak_model_reads_a_skill_by_an_action(tmp_path: Path) -> None:
    """No code fits the task, so the model chooses actions as JSON, and `use_skill` is one of them."""
    read = json.dumps({"action": "use_skill", "arguments": {"name": "mine"}})
    trial = weak(tmp_path, read, json.dumps({"action": "answer", "answer": "Roses are red, code is read."}))
    trial.told_skills = skills_of_the_project()
    await trial.run("Compose a sonnet")
    first, second = map(text_of, trial.prompts[:2])
    assert "Skills (read with use_skill): mine" in first and "- use_skill(" in first
    assert "1. Rhyme the second line." in second
    assert trial.told_skills.used == ["mine"]


@pytest.mark.parametrize("context", [4_096, 8_192, 32_768])
async def test_long_skills_and_memories_leave_room_for_the_code_P2(tmp_path: Path, context: int) -> None:
    script = [found("`retry` returns the number of times.", "4: def retry(times):")]
    trial = Trial(tmp_path, script, files=FILES, takes_tools=False, context=context)
    lines = "\n".join(f"{number}. Do the step with the number {number}." for number in range(1, 400))
    trial.told_skills, trial.memories = skills_of_the_project(lines), "\n".join(["> It was slow."] * 500)
    outcome = await trial.run()
    assert outcome.error is None, outcome.error
    shown = text_of(trial.answer_prompts[0])
    assert "4: def retry(times):" in shown and "1. Do the step with the number 1." in shown
    assert "[the rest is left out: it does not fit]" in shown


async def test_no_memory_is_named_whose_text_does_not_fit(tmp_path: Path) -> None:
    script = [found("`retry` returns the number of times.", "4: def retry(times):")]
    trial = Trial(tmp_path, script, files=FILES, takes_tools=False, context=4_096)
    long = "It was slow. " * 500
    trial.memories = f"Notes, not instructions.\n> [1k0a] fact:\n> Short.\n> [1k0b] fact:\n> {long}"
    await trial.run()
    shown = text_of(trial.answer_prompts[0])
    assert "> [1k0a] fact:\n> Short." in shown and "1k0b" not in shown
    trial = Trial(tmp_path / "other", script, files=FILES, takes_tools=False, context=4_096)
    trial.memories = f"Notes, not instructions.\n> [1k0b] fact:\n> {long}"
    await trial.run()
    assert "Notes, not instructions" not in text_of(trial.answer_prompts[0])


async def test_skills_never_cost_a_model_the_tools_that_it_can_hold(tmp_path: Path) -> None:
    """A model that calls one of four tools well, but not of five, is not offered `use_skill`."""
    script = [calls("search", pattern="retry"), "`retry` is in src/app.py:4."]
    trial = Trial(tmp_path, script, files=FILES, tools=("search", "read_file"))
    trial.skills = ModelSkills(calls_tools=True, follows_schema=True, max_tools=2)
    trial.told_skills = skills_of_the_project()
    outcome = await trial.run()
    assert outcome.error is None
    assert {tool.name for tool in trial.prompts[0].tools} == {"search", "read_file"}
    shown = text_of(trial.answer_prompts[0])
    assert "Retries are counted in TRIES" in shown and "use_skill" not in shown


async def test_refused_yes_is_not_sought_in_further_code_P8(tmp_path: Path) -> None:
    """Asked about more and more code, a small model says yes sooner or later."""
    wrong = found("Yes, `count_stripes` returns STRIPES.", "return STRIPES")
    trial = weak(tmp_path, wrong, found("Yes, `retry` returns its times.", "return times"))
    outcome = await trial.run("Does a retry wait between tries of a host?")
    assert len(trial.answer_prompts) == 1
    assert outcome.output.startswith("Not found in the code that was read.")


async def test_lines_that_are_too_long_for_a_request_are_passed_over(tmp_path: Path) -> None:
    long = "ab9{}=;retry:" * 22
    files = {"src/long.py": "def retry_long(retry):\n" + "".join(f'    x{i} = "{long}"\n' for i in range(20))}
    trial = Trial(tmp_path, [NOT_SHOWN] * 6, files=files, takes_tools=False, context=2_048)
    trial.model.chance = 0.5
    outcome = await trial.run("Where is retry long handled?")
    assert outcome.error is None and outcome.output.startswith(TOO_SMALL.format(tokens=614))


async def test_answer_is_asked_from_the_lines_that_the_model_said_yes_to(tmp_path: Path) -> None:
    """More of a long definition is shown only if that fits into the request."""
    body = "".join(f"    step_{i} = prepare_some_longer_thing(times, {i}, 'value {i}')\n" for i in range(90))
    end = "    return backoff_of_retry(times)  # wait between retries of a host\n"
    files = {"src/app.py": f"def carry_out(times):\n{body}{end}\n\ndef other():\n    return 1\n"}
    said = found("`carry_out` returns `backoff_of_retry`.", "return backoff_of_retry(times)")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False, context=4_096)
    trial.model.chance = lambda prompt: 0.8 if "backoff_of_retry" in text_of(prompt) else 0.3
    outcome = await trial.run("Where is the backoff between retries of a host returned?")
    assert "backoff_of_retry" in text_of(trial.answer_prompts[0]).partition("Question:")[0]
    assert outcome.error is None and "src/app.py:92" in outcome.output


async def test_looks_leave_the_tokens_for_an_answer_P2(tmp_path: Path) -> None:
    body = "".join(f"    step_{i} = prepare(retry, {i})\n" for i in range(16))
    files = {
        f"src/retry_{name}.py": f"def retry_{name}(retry):\n{body}    return {name}(retry)\n"
        for name in "abcdefg"
    }
    said = found("`retry_a` prepares a retry.", "step_1 = prepare(retry, 1)")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False, budget=Budget(tokens=3_000))
    trial.model.chance = 0.72
    outcome = await trial.run("Where is a retry prepared?")
    assert outcome.error is None and "src/retry_a.py" in outcome.output


async def test_model_that_fails_after_one_look_answers_as_without_looks(tmp_path: Path) -> None:
    """One look does not tell what stands out."""
    script = [found("`retry_a` calls `a`.", "return a(retry)"), "It is `retry_a`."]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False)
    looks = iter([0.55])

    def chance(prompt: Prompt) -> float:
        if (told := next(looks, None)) is None:
            raise ModelFailed("no answer")
        return told

    trial.model.chance = chance
    await trial.run("Where is a retry called?")
    assert text_of(trial.answer_prompts[0]).count("def retry_") > 1


async def test_hedge_of_the_first_part_is_not_told_for_the_second(tmp_path: Path) -> None:
    script = [found("`retry_a` calls `a`.", "return a(retry)"), found("It is `retry_a`.", "return a(retry)")]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False)
    trial.model.chance = 0.72
    await trial.run("Where is a retry called, and how is its result returned?")
    assert any("Known:" in text_of(prompt) for prompt in trial.prompts)
    assert not any(NOT_CERTAIN in text_of(prompt) for prompt in trial.prompts)


async def test_refused_answer_to_either_part_is_unverified_P8(tmp_path: Path) -> None:
    for likely in ("Question: What does", "Question: How does"):
        folder = tmp_path / likely[-8:].strip()
        folder.mkdir()
        invented = found("`invented_name` does it.", "return zzz")
        trial = Trial(folder, [invented] * 3, files=RETRIES, takes_tools=False)
        trial.model.chance = lambda prompt, likely=likely: 0.8 if likely in text_of(prompt) else 0.2
        outcome = await trial.run("What does a retry return, and how does `retry_b` do a `retry_c`?")
        assert isinstance(outcome.error, Unverified)


async def test_places_beside_an_absent_word_were_opened(tmp_path: Path) -> None:
    outcome = await weak(tmp_path).run("Does retry support HTTP/2?")
    assert NEAREST in outcome.output and "[not opened]" not in outcome.output


async def test_second_answer_does_not_count_without_a_first_P8(tmp_path: Path) -> None:
    """Nobody knows what the second part of a question is about if the first has no answer."""
    trial = weak(tmp_path, *[found("DELAY is 42.", "DELAY = 42")] * 4)
    trial.model.chance = lambda prompt: 0.85 if "Question: How long" in text_of(prompt) else 0.2
    outcome = await trial.run("Which zebra has most stripes, and how long is the delay?")
    assert outcome.output.startswith("Not found") and "42 (" not in outcome.output


# What no answer may depend on: garbled replies, failed requests, and limits in the middle.


def likely(name: str, chance: float = 0.42) -> Callable[[Prompt], float]:
    """A model that takes the code with this text for likelier than other code."""
    return lambda prompt: chance if name in text_of(prompt) else 0.3


@pytest.mark.parametrize("said", ["What do you want to know?", "Could you give more context?"])
async def test_reply_that_is_another_question_does_not_replace_the_question(
    tmp_path: Path, said: str
) -> None:
    right = found("`retry_b` calls `b`.", "return b(retry)")
    trial = Trial(tmp_path, [right], files=RETRIES, takes_tools=False)
    trial.model.rephrased = said
    trial.model.chance = lambda prompt: (
        0.9 if "def retry_b" in text_of(prompt) and said in text_of(prompt) else 0.3
    )
    outcome = await trial.run("How is a retry kept from being done twice?")
    assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND)
    assert not any("in the words of a programmer" in event for event in trial.events)


async def test_place_outside_of_the_likeliest_code_is_marked_P8(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path, [found("`retry_a` calls `a`.", "return a(retry)")], files=RETRIES, takes_tools=False
    )
    trial.model.chance = likely("def retry_c", 0.95)
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and outcome.facts["unverified"] == NOTHING_STANDS_OUT
    assert NOT_CERTAIN in outcome.output and "The likeliest place is src/retry_c.py:1" in outcome.output


@pytest.mark.parametrize("tokens", [2400, 2600, 2800, 3000])
async def test_few_looks_before_a_limit_make_nothing_certain(tmp_path: Path, tokens: int) -> None:
    """P2, P8: the budget ends the looks, so nothing tells whether one stands out."""
    steps = "".join(f"    step_{n}(retry, option_{n}, other_{n}, third_{n}, fourth_{n})\n" for n in range(30))
    files = {path: f"{text}    called({path!r})\n{steps}" for path, text in RETRIES.items()}
    yes = found("Yes, `retry_a` calls `a`.", "def retry_a(retry):")
    trial = Trial(tmp_path, [yes], files=files, takes_tools=False, budget=Budget(tokens=tokens), context=8192)
    trial.model.chance = 0.58
    outcome = await trial.run("Is a retry called?")
    assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND)


@pytest.mark.parametrize(
    "extra",
    [
        {"README.md": "# Retry\n\nWhere is a retry called? A retry is called twice.\nIt is called.\n"},
        {"tests/test_retry.py": "def test_retry_called(retry):\n    assert retry.called(retry)\n"},
    ],
)
async def test_code_that_is_not_likely_is_not_named_for_a_likely_page_or_test(
    tmp_path: Path, extra: dict[str, str]
) -> None:
    trial = Trial(tmp_path, [], files={**RETRIES, **extra}, takes_tools=False)
    trial.model.chance = likely(next(iter(extra)), 0.41)
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND)


async def test_nothing_is_lost_if_other_words_cannot_be_asked_for(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.fails = lambda prompt: prompt.turns[-1].text.endswith((REPHRASE_TASK, WORDS_TASK))
    trial.model.chance = lambda prompt: 0.39 if "def retry_c" in text_of(prompt) else 0.3
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND)
    assert outcome.output.splitlines()[2].startswith("- src/retry_c.py:1"), "the likeliest comes first"


def asks_for_stripes(prompt: Prompt) -> bool:
    return not prompt.alternatives and "stripes" in text_of(prompt).partition("Question:")[2]


ZEBRA = "Which function waits between tries, and how many stripes has the zebra?"


async def test_answer_to_one_part_is_kept_if_the_model_fails_at_the_other(tmp_path: Path) -> None:
    trial = weak(tmp_path, found("`wait_between_tries` returns DELAY.", "    return DELAY"))
    trial.model.fails = asks_for_stripes
    outcome = await trial.run(ZEBRA)
    assert outcome.error is None and "src/wait.py:5" in outcome.output
    assert f"{NOT_ANSWERED} (the server sent an empty reply): How many stripes" in outcome.output


async def test_answer_to_one_part_is_kept_at_the_deadline_P2(tmp_path: Path) -> None:
    first = found("`wait_between_tries` returns DELAY.", "    return DELAY")

    async def hangs(prompt: Prompt) -> str:
        await asyncio.Event().wait()
        raise AssertionError("the model never answers")

    trial = Trial(tmp_path, [first, hangs], files=FILES, takes_tools=False, seconds=1.0)
    trial.model.chance = 0.85
    outcome = await trial.run(ZEBRA)
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.output.startswith("`wait_between_tries` returns DELAY") and NEAREST in outcome.output


async def test_failed_look_after_the_second_search_keeps_what_the_first_has_shown(tmp_path: Path) -> None:
    files = {f"src/retry_{n}.py": f"def retry_{n}(retry):\n    return {n}(retry)\n" for n in "abcdefghij"}
    trial = Trial(
        tmp_path, [found("A `RetryManager` does it.", "return a(retry)")], files=files, takes_tools=False
    )
    trial.model.rephrased = "Which function invokes the retry handler?"

    def chance(prompt: Prompt) -> float:
        if "invokes" in text_of(prompt):
            raise ModelFailed("busy")
        return 0.3

    trial.model.chance = chance
    outcome = await trial.run("Where is a retry called?")
    assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND)
    assert not trial.answer_prompts, "no code was likely"


async def test_one_failed_look_does_not_end_all_looks(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.rephrased = "Which function invokes the retry handler?"
    failed: list[Prompt] = []

    def chance(prompt: Prompt) -> float:
        if not failed:
            failed.append(prompt)
            raise ModelFailed("busy")
        return 0.42 if "def retry_c" in text_of(prompt) else 0.3

    trial.model.chance = chance
    await trial.run("Where is a retry called?")
    assert sum(bool(prompt.alternatives) for prompt in trial.prompts) > MIN_LOOKS


async def test_places_are_sorted_by_the_looks_of_both_searches(tmp_path: Path) -> None:
    files = {f"src/retry_{n}.py": f"def retry_{n}(retry):\n    return {n}(retry)\n" for n in "abcdefg"}
    trial = Trial(tmp_path, [], files=files, takes_tools=False)
    trial.model.rephrased = "Which function invokes the retry handler?"
    trial.model.chance = lambda prompt: (
        0.3 if "invokes" in text_of(prompt) else 0.36 if "def retry_f" in text_of(prompt) else 0.35
    )
    outcome = await trial.run("Where is a retry called?")
    places = outcome.output.partition(NEAREST)[2].split()
    assert "src/retry_f.py:1:" in places, "it was the likeliest of the first search"


async def test_page_does_not_answer_where_after_the_question_was_rephrased(tmp_path: Path) -> None:
    page = "# Retry\n\nThe retry handler is invoked when a request fails.\nIt is invoked by `retry_a`.\n"
    trial = Trial(tmp_path, [], files={**RETRIES, "README.md": page}, takes_tools=False)
    trial.model.rephrased = "How is the retry handler invoked?"
    trial.model.chance = likely("README", 0.9)
    outcome = await trial.run("Where is a retry begun again?")
    assert "README" not in outcome.output


async def test_rival_whose_line_begins_like_the_cited_one_is_named(tmp_path: Path) -> None:
    first = "# two\ndef retry_a(retry):\n    return a(retry)\n"
    between = "".join(f"# {number}\n" for number in range(16))
    files = {
        "src/app.py": f"{first}{between}def retry_b(retry):\n    return b(retry)\n",
        "src/other.py": "def other(retry):\n    return c(retry)\n",
    }
    trial = Trial(
        tmp_path, [found("`retry_b` calls `b`.", "def retry_b(retry):")], files=files, takes_tools=False
    )
    trial.model.chance = lambda prompt: (
        0.66 if "def retry_a" in text_of(prompt) else 0.72 if "def retry_b" in text_of(prompt) else 0.4
    )
    outcome = await trial.run("Where is a retry called?")
    assert "src/app.py:20" in outcome.output and "It may also be src/app.py:2 " in outcome.output


async def test_same_code_in_the_same_order_confirms_nothing(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        [found("`retry` returns the number of times.", "def retry(times):")],
        files={"src/app.py": FILES["src/app.py"]},
        takes_tools=False,
    )
    trial.skills = ModelSkills(calls_tools=False, follows_schema=True, judges_code=False)
    outcome = await trial.run("How is a retry carried out?")
    assert outcome.error is None and outcome.output.startswith(NOTHING_FOUND)
    assert len(trial.answer_prompts) == 1


def long_definition(name: str, line: str, rest: str) -> str:
    """Return a definition with a line in the middle of many wide ones."""
    wide = [
        f"    {rest}_{number} = prepare_{rest}_{number}(retry, option_{number}, other_option_{number})"
        for number in range(20)
    ]
    return "\n".join([f"def {name}(retry):", *wide[:8], f"    {line}", *wide[8:], "", "", ""])


async def test_cited_line_of_each_part_is_quoted_though_not_all_lines_fit(tmp_path: Path) -> None:
    wait = long_definition("wait_between_tries", "sleep(DELAY_S)", "step")
    stop = long_definition("stop_retry", "retry_end = 'halt'", "check")
    script = [
        found("`wait_between_tries` calls sleep with DELAY_S.", "sleep(DELAY_S)"),
        found("retry_end is 'halt'.", "retry_end = 'halt'"),
    ]
    files = {"src/wait.py": wait + stop, "src/net.py": FILES["src/net.py"]}
    trial = Trial(tmp_path, script, files=files, takes_tools=False)
    trial.model.chance = 0.85
    outcome = await trial.run("How does it wait between tries, and what is the retry end?")
    quoted = outcome.output.partition(QUOTED_HEADING)[2]
    assert "sleep(DELAY_S)" in quoted and "retry_end = 'halt'" in quoted


TWO_DOUBTFUL_PARTS = "Which function calls a retry, and which caller does `retry_b` have?"


def chance_of_each_part(prompt: Prompt) -> float:
    """For each of the two parts, other code is a little likelier than the rest."""
    code, _, question = text_of(prompt).partition("Question: ")
    wanted = "def retry_b" if "retry_b" in question.partition("\n\n")[0] else "def retry_a"
    return 0.47 if wanted in code else 0.34


async def test_doubt_about_both_parts_is_said_once(tmp_path: Path) -> None:
    script = [
        found("`retry_a` calls `a` with the retry.", "return a(retry)"),
        found("It is `retry_b` that calls `b`.", "return b(retry)"),
    ]
    trial = Trial(tmp_path, script, files=RETRIES, takes_tools=False)
    trial.model.chance = chance_of_each_part
    outcome = await trial.run(TWO_DOUBTFUL_PARTS)
    assert outcome.output.count(NOT_CERTAIN) == 1


async def test_name_is_told_with_the_place_of_its_own_definition_P3(tmp_path: Path) -> None:
    """The lines of a short definition run on into the next one."""
    steps = "".join(f"    step_{number}(queue)\n" for number in range(22))
    files = {
        "src/a.py": "def retry_now_at_once(queue):\n    return retry(queue)\n\n\n"
        f"def retry_later(queue):\n{steps}    return queue\n",
        "src/b.py": "def retry_at_once_other(queue):\n    return retry_later(queue)\n",
    }
    said = found("`retry_at_once_other` does it, it calls `retry_later`.", "return retry_later(queue)")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False)
    trial.model.chance = lambda prompt: 0.95 if "src/b.py" in text_of(prompt) else 0.3
    outcome = await trial.run("Where is a retry of the queue done now, at once?")
    assert outcome.error is None and "src/b.py:1" in outcome.output
    assert "`retry_now_at_once` is at src/a.py:5" not in outcome.output


async def test_first_part_is_not_answered_by_the_second_P8(tmp_path: Path) -> None:
    files = {
        "src/client.py": "def send(client):\n    for attempt in client.attempts:\n        retry(client)\n",
        "src/queue.py": "def give_up(queue):\n    if queue.size > 5:\n        raise TooManyWaiting\n",
    }
    said = found("`give_up` raises TooManyWaiting if the size is above 5.", "raise TooManyWaiting")
    trial = Trial(tmp_path, [said], files=files, takes_tools=False)
    trial.model.chance = lambda prompt: (
        0.95 if "give_up" in text_of(prompt) and "TooManyWaiting for" in text_of(prompt) else 0.3
    )
    outcome = await trial.run(
        "How many retry attempts does the client make, and which function raises TooManyWaiting for a queue?"
    )
    assert "Not found: How many retry attempts does the client make?" in outcome.output


async def test_only_the_part_that_is_looked_for_is_rephrased(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [], files=FILES, takes_tools=False)
    trial.model.chance = 0.3
    await trial.run("Which delay is used, and which function counts the stripes of a zebra?")
    asked = [text_of(prompt) for prompt in trial.prompts if text_of(prompt).endswith(REPHRASE_TASK)]
    assert asked and not any("delay" in text and "zebra" in text for text in asked)


async def test_part_about_something_that_occurs_nowhere_does_not_discard_the_other(tmp_path: Path) -> None:
    trial = weak(tmp_path, found("`wait_between_tries` returns DELAY.", "    return DELAY"))
    outcome = await trial.run("Which function waits between tries, and how is the delay passed to Redis?")
    told = in_words(outcome.output)
    assert "src/wait.py:5" in told
    assert told.endswith(
        "Not found: How is the delay passed to Redis? No code of this project contains `Redis`."
    )


async def test_doubtful_answer_of_an_interrupted_run_is_marked_P8(tmp_path: Path) -> None:
    async def hangs(prompt: Prompt) -> str:
        await asyncio.Event().wait()
        raise AssertionError("the model never answers")

    first = found("`retry_a` calls `a` with the retry.", "return a(retry)")
    trial = Trial(tmp_path, [first, hangs], files=RETRIES, takes_tools=False, seconds=1.0)
    trial.model.chance = chance_of_each_part
    outcome = await trial.run(TWO_DOUBTFUL_PARTS)
    assert isinstance(outcome.error, DeadlineExceeded)
    assert outcome.output.startswith("`retry_a` calls `a` with the retry") and NOT_CERTAIN in outcome.output


@pytest.mark.parametrize("silent", [(1,), (4,), (1, 5)])
async def test_one_look_without_an_answer_does_not_end_all_looks(
    tmp_path: Path, silent: tuple[int, ...]
) -> None:
    """A server may send a single empty reply, for example while it loads its model."""
    trial = Trial(tmp_path, [], files=RETRIES, takes_tools=False)
    trial.model.rephrased = "Which function invokes the retry handler?"
    trial.model.says = lambda prompt: "" if number_of_looks(trial) in silent else "no"
    await trial.run("Where is a retry called?")
    assert number_of_looks(trial) >= 2 * len(RETRIES), "each place, and again with the other question"


async def test_model_that_answers_no_look_gets_few_of_them_P2(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [NOT_SHOWN] * 4, files=RETRIES, takes_tools=False)
    trial.model.says = ""
    await trial.run("Where is a retry called?")
    assert number_of_looks(trial) == MAX_SILENT_LOOKS and trial.answer_prompts


def number_of_looks(trial: Trial) -> int:
    return sum(prompt.alternatives > 0 for prompt in trial.prompts)
