"""What a weak model says about shown code counts only as far as the code supports it (P3, P8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retinue.executors.local.code_answers import CodeAnswers, Judged
from retinue.tools import CodeExcerpt, SeenCode


def excerpt(path: str, first: int, text: str, symbol: str = "", line: int = 0, end: int = 0) -> CodeExcerpt:
    lines = tuple(enumerate(text.splitlines(), first))
    return CodeExcerpt(path, line or first, lines, symbol, end or lines[-1][0])


LIMITS = excerpt(
    "src/limits.rs",
    10,
    "/// Most results that are kept back.\nconst MAX_KEPT: usize = 1000;\n/// Time until they are printed.\n"
    "const MAX_WAIT: u64 = 100;\n",
    "MAX_KEPT",
    line=11,
    end=11,
)
CONFIG = excerpt(
    "src/config.rs",
    3,
    "struct Config {\n    /// Whether case matters.\n    case_sensitive: bool,\n}",
    "Config",
)
DECIDES = excerpt(
    "src/main.rs",
    40,
    "fn build(args: &Args) -> Config {\n    let case_sensitive = !args.ignore && has_upper(args);\n"
    "    Config { case_sensitive }\n}",
    "build",
)
SCORES = excerpt(
    "src/scores.rs",
    20,
    "fn outliers(xs: &[f64]) -> usize {\n    let scores = zscores_of(xs);\n"
    "    scores.iter().filter(too_far).count()\n}",
    "outliers",
)
ZSCORES = excerpt(
    "src/scores.rs",
    5,
    "fn zscores_of(xs: &[f64]) -> Vec<f64> {\n    xs.iter().map(deviation).collect()\n}",
    "zscores_of",
)


def seen_of(*shown: CodeExcerpt) -> SeenCode:
    seen = SeenCode()
    for one in shown:
        seen.add_lines(one.path, one.lines)
    return seen


def judge(task: str, answer: str, quote: str, *shown: CodeExcerpt, part: str = "", known: str = "") -> Judged:
    seen = seen_of(*shown)
    reply = {"answer": answer, "quote": quote, "shown": True}
    return CodeAnswers(task, shown, seen).judge(part or task, reply, known)


def test_number_of_something_else_is_refused() -> None:
    task = "How many results are kept back?"
    wrong = judge(task, "The time until printing is 100 milliseconds.", "const MAX_WAIT: u64 = 100;", LIMITS)
    assert wrong.text is None and wrong.problem == "the answer does not speak of what was asked for"
    right = judge(task, "MAX_KEPT is 1000.", "const MAX_KEPT: usize = 1000;", LIMITS)
    assert right.text == "MAX_KEPT is 1000 (src/limits.rs:11).", (
        "the comment above the line speaks of results"
    )


def test_sentence_that_was_torn_out_of_a_piece_of_code_is_left_out() -> None:
    said = "kept` array holds them. MAX_KEPT is 1000."
    found = judge("How many results are kept back?", said, "const MAX_KEPT: usize = 1000;", LIMITS)
    assert found.text == "MAX_KEPT is 1000 (src/limits.rs:11)."


def test_words_of_a_long_task_are_no_question() -> None:
    task = "Look at the limits.\nTell me how many of them you would change, and which colleague to ask."
    said = judge(task, "MAX_KEPT is the most results.", "const MAX_KEPT: usize = 1000;", LIMITS)
    assert said.text == "MAX_KEPT is the most results (src/limits.rs:11)."


def test_place_that_only_declares_is_no_answer_to_where_something_is_decided() -> None:
    task = "Where is it decided whether case matters?"
    field = judge(task, "The field `case_sensitive` of `Config`.", "case_sensitive: bool,", CONFIG, DECIDES)
    assert "only declares" in field.unrelated
    decides = judge(task, "`build` decides it.", "let case_sensitive = !args.ignore", CONFIG, DECIDES)
    assert (
        decides.text
        == "`build` decides it (src/main.rs:40). The likeliest place is src/config.rs:3 (Config)."
    )
    assert not decides.unrelated
    how = judge("How is the case chosen?", "By `case_sensitive`.", "case_sensitive: bool,", CONFIG, DECIDES)
    assert "only declares" in how.unrelated
    declared = "Where is the field for case declared?"
    assert (
        judge(declared, "In `Config`.", "case_sensitive: bool,", CONFIG).text
        == "In `Config` (src/config.rs:3)."
    )


def test_definitions_that_the_cited_line_names_get_their_place_too() -> None:
    found = judge(
        "Where are the scores computed?",
        "The `outliers` function uses them.",
        "let scores = zscores_of(xs);",
        SCORES,
        ZSCORES,
    )
    assert found.text == "The `outliers` function uses them (src/scores.rs:20)."
    found = judge(
        "Where are the scores computed?",
        "They are computed here.",
        "let scores = zscores_of(xs);",
        SCORES,
        ZSCORES,
    )
    assert found.text == (
        "They are computed here (src/scores.rs:21, in outliers at src/scores.rs:20). "
        "`zscores_of` is at src/scores.rs:5."
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "`build` calls has_upper. It then calls log_all.",
            "`build` calls has_upper (src/main.rs:41, in build).",
        ),
        (
            "`build` calls has_upper. The code shows the answer.",
            "`build` calls has_upper (src/main.rs:41, in build).",
        ),
        (
            "`build` calls has_upper. If the flag is set, the",
            "`build` calls has_upper (src/main.rs:41, in build).",
        ),
        (
            "It runs `upper := new(3)`. This sets args. `build` calls has_upper.",
            "`build` calls has_upper (src/main.rs:41, in build).",
        ),
    ],
    ids=["unseen name", "about the reply", "cut", "invented code"],
)
def test_sentences_that_do_not_hold_are_left_out(said: str, kept: str) -> None:
    quote = "let case_sensitive = !args.ignore && has_upper(args);"
    text = judge("How does it choose the case?", said, quote, DECIDES).text
    within = ", in build at src/main.rs:40"
    assert text is not None and text.replace(within, "") == kept.replace(", in build", "")


def test_explanation_that_names_nothing_of_the_code_comes_with_its_line() -> None:
    line = "let case_sensitive = !args.ignore && has_upper(args);"
    told = judge("How is the case chosen?", "The case is chosen by a flag.", line, DECIDES)
    assert (
        told.text == f"The case is chosen by a flag: `{line}` (src/main.rs:41, in build at src/main.rs:40)."
    )
    empty = judge("How is the case chosen?", "The case is chosen by a flag.", "no such line", DECIDES)
    assert empty.text is None and empty.problem == "the answer copies no line of this code"


RAISES = excerpt("src/cache.py", 7, 'def put(size):\n    raise ValueError("too large to keep")\n', "put")


def test_copied_line_gives_the_text_that_an_answer_leaves_out() -> None:
    task = "Which exception is raised for a large value, and with which message?"
    line = 'raise ValueError("too large to keep")'
    found = judge(task, "A ValueError is raised.", line, RAISES, part="With which message?")
    assert found.text == f"`{line}` (src/cache.py:8, in put at src/cache.py:7)."
    whole = judge(task, 'The message is "too large to keep".', line, RAISES, part="With which message?")
    assert whole.text == 'The message is "too large to keep" (src/cache.py:8, in put at src/cache.py:7).'


def test_second_answer_that_repeats_the_first_is_refused() -> None:
    task = "Which exception is raised for a large value, and when?"
    first, part = "A ValueError is raised (src/cache.py:8, in put).", "When?"
    again = judge(task, "The ValueError is raised.", "def put(size):", RAISES, part=part, known=first)
    assert again.text is None and again.problem == "the answer repeats what is known"
    assert judge(task, "If it is `too large`.", "def put(size):", RAISES, part=part, known=first).text


def test_number_whose_line_has_no_word_of_the_question_is_refused() -> None:
    states = excerpt("src/sender.js", 18, "const DEFAULT = 0;\nconst DEFLATING = 1;\n", "DEFAULT", end=18)
    task = "Below which size in bytes is a message not compressed by default?"
    wrong = judge(task, "A message is not compressed below DEFAULT = 0.", "const DEFAULT = 0;", states)
    assert wrong.text is None and wrong.problem == "the number belongs to something else"


def test_answer_beside_a_yes_or_no_question_is_taken_for_not_found() -> None:
    task = "Is there a limit on how many results are kept back and printed?"
    beside = judge(task, "MAX_KEPT is a constant.", "const MAX_KEPT: usize = 1000;", LIMITS)
    assert beside.text is None and not beside.problem
    yes = "Yes, at most MAX_KEPT results are kept back before they are printed."
    assert judge(task, yes, "const MAX_KEPT: usize = 1000;", LIMITS).text


def test_line_that_an_answer_names_by_its_number_is_its_place() -> None:
    task = "Where is the case chosen?"
    found = judge(task, "The case is chosen at line 41.", "something else", CONFIG, DECIDES)
    assert found.text is not None and "(src/main.rs:41, in build at src/main.rs:40)" in found.text
    assert judge(task, "The case is chosen at line 99.", "something else", CONFIG, DECIDES).text is None


def test_denial_is_taken_for_not_found() -> None:
    task = "Can the case be ignored?"
    denied = judge(task, "No, `case_sensitive` is not ignored.", "let case_sensitive = !args.ignore", DECIDES)
    assert denied.text is None and not denied.problem and denied.why.startswith("the model denies it")
    assert judge(task, "Yes, by `case_sensitive`.", "let case_sensitive = !args.ignore", DECIDES).text


def test_condition_with_not_is_no_denial() -> None:
    said = "If the file does not have capitals, `has_upper` is false, and case_sensitive too."
    assert judge("Where is the case chosen?", said, "has_upper(args)", DECIDES).text


def test_model_that_does_not_find_it_is_believed() -> None:
    missing = judge("Where is a mail sent?", "The code does not show it.", "", DECIDES)
    assert missing.text is None and not missing.problem


MASK_KEY = excerpt(
    "conn.go",
    189,
    "// newMaskKey returns a value for masking frames.\nfunc newMaskKey() [4]byte {\n    return random(4)\n}",
    "newMaskKey",
    line=190,
)
ADVANCE = excerpt(
    "conn.go", 803, "func (c *Conn) advanceFrame() (int, error) {\n    return noFrame, nil\n}", "advanceFrame"
)


def test_explanation_of_code_that_the_search_ranks_lower_may_be_unrelated() -> None:
    task = "How are the bytes of a frame masked?"
    said = "It advances the frame and returns a number for the bytes."
    lower = judge(task, said, "return noFrame, nil", MASK_KEY, ADVANCE)
    assert lower.unrelated == "the answer explains other code than the likeliest"
    best = judge(task, "A frame is masked with four random bytes.", "return random(4)", MASK_KEY, ADVANCE)
    assert best.text is not None and "conn.go:191" in best.text


def test_explanation_without_a_line_of_the_code_is_refused() -> None:
    said = "`newMaskKey` masks the bytes of a frame."
    judged = judge("How are the bytes of a frame masked?", said, "the most important line", MASK_KEY)
    assert judged.text is None and judged.problem == "the answer copies no line of this code"


def test_denial_that_repeats_the_question_is_none() -> None:
    task, line = "Is a limit kept that isn't printed?", "const MAX_KEPT: usize = 1000;"
    judged = judge(task, "Yes, MAX_KEPT is a limit of kept results that isn't printed.", line, LIMITS)
    assert not judged.why.startswith("the model denies it")


def test_place_needs_no_copied_line_if_the_answer_names_the_likeliest_definition() -> None:
    said = "`newMaskKey` masks the bytes of a frame."
    judged = judge("Where are the bytes of a frame masked?", said, "the most important line", MASK_KEY)
    assert judged.text == "`newMaskKey` masks the bytes of a frame (conn.go:190)."


def test_number_of_an_example_is_no_value() -> None:
    """A comment such as `(e.g., 100)` says what a value may look like."""
    script = excerpt("rdb.go", 970, "// ARGV[5] -> max number of tasks in the archive (e.g., 100)\n")
    task, line = "How many tasks does the archive hold?", "// ARGV[5] -> max number of tasks in the archive"
    assert judge(task, "The archive holds 100 tasks.", line, script).text is None
    limit = excerpt("rdb.go", 952, "const maxArchive = 10000 // number of tasks in the archive\n")
    judged = judge(task, "The archive holds 10,000 tasks.", "const maxArchive = 10000", limit)
    assert judged.text == "The archive holds 10000 tasks (rdb.go:952)."


def test_code_in_the_answer_is_a_copied_line_too() -> None:
    said = "A frame is masked with the bytes of `random(4)`."
    judged = judge("How are the bytes of a frame masked?", said, "the most important line", MASK_KEY)
    assert judged.text is not None and "conn.go:191" in judged.text


def test_class_that_is_spelled_otherwise_is_invented() -> None:
    said = "The `Engine` class sets the pause of requests."
    judged = judge("Where is the pause of requests set?", said, "self.paused = True", PAUSE)
    assert judged.text == "`self.paused = True` (engine.py:264, in pause at engine.py:263).", (
        "the copied line says where"
    )
    told = judge("How is the pause of requests set?", said, "self.paused = True", PAUSE)
    assert told.problem == "the answer has something that this code does not contain: Engine"


def test_class_of_a_method_that_is_not_shown_is_left_out() -> None:
    said = "The pause is set by the `pause` method of the `Engine` class."
    judged = judge("Where is the pause set?", said, "self.paused = True", PAUSE)
    assert judged.text == "The pause is set by the `pause` method (engine.py:263)."


def test_explanation_that_names_what_its_code_does_not_contain_is_refused() -> None:
    said = "`advanceFrame` masks the bytes of a frame and returns `noFrame`."
    judged = judge("How are the bytes of a frame masked?", said, "return random(4)", MASK_KEY, ADVANCE)
    assert judged.text is None
    assert judged.problem == "the answer names advanceFrame, which the code that it cites does not contain"


PAUSE = excerpt("engine.py", 263, "def pause(self):\n    self.paused = True", "pause")
ENVIRONMENT = excerpt(
    "command.js",
    10,
    "parseEnv() {\n  this.all.forEach((one) => this.setFrom(process.env[one]));\n}",
    "parseEnv",
)


def test_place_that_shares_one_word_with_the_question_may_be_unrelated() -> None:
    task = "Where is the pause between two requests to the same site worked out?"
    judged = judge(task, "The `pause` method sets `self.paused`.", "self.paused = True", PAUSE)
    assert judged.unrelated == "the code that the answer cites is about something else"


def test_code_with_a_word_that_was_searched_for_needs_one_of_the_question() -> None:
    inodes = excerpt(
        "walk.rs", 70, "fn clean_inodes(count: u64) {\n    inodes.insert(count);\n}", "clean_inodes"
    )
    task = "Where are hard links kept from being counted again?"
    said = "`clean_inodes` inserts into `inodes`."
    assert judge(task, said, "inodes.insert(count);", inodes).unrelated
    seen = seen_of(inodes)
    searched = CodeAnswers(task, [inodes], seen, words=("inode", "value"))
    found = searched.judge(task, {"answer": said, "quote": "inodes.insert(count);", "shown": True})
    assert found.text is not None and "walk.rs:70" in found.text
    other = CodeAnswers(task, [PAUSE], seen, words=("inode", "value"))
    assert (
        other.judge(task, {"answer": "`pause` stops.", "quote": "self.paused = True", "shown": True}).text
        is None
    )


def test_names_in_code_may_be_abbreviated() -> None:
    task = "Where is the environment read?"
    judged = judge(
        task, "In `parseEnv`.", "this.all.forEach((one) => this.setFrom(process.env[one]));", ENVIRONMENT
    )
    assert judged.text is not None and "command.js:10" in judged.text


CONSTANTS = excerpt(
    "sender.js",
    13,
    "const POOL_SIZE = 8 * 1024;\n\nconst DEFAULT = 0;\nconst DEFLATING = 1;",
    "POOL_SIZE",
    end=13,
)


def test_constant_stands_alone() -> None:
    task = "Below which size in bytes are messages not compressed by default?"
    judged = judge(task, "Messages below a size of 0 bytes.", "const DEFAULT = 0;", CONSTANTS)
    assert judged.text is None and judged.problem == "the number belongs to something else"


ERRORS = excerpt(
    "mux.go", 20, '\tErrMethod = errors.New("no such method")\n\tErrNotFound = errors.New("no route")'
)


@pytest.mark.parametrize(
    ("part", "follows"),
    [
        ("What is its message?", '`ErrNotFound = errors.New("no route")` (mux.go:21).'),
        ("Which number does it become?", None),
        ("Which message does the waiting client see?", None),
    ],
)
def test_code_tells_more_about_the_name_in_an_answer(part: str, follows: str | None) -> None:
    seen = seen_of(ERRORS)
    answers = CodeAnswers("Which error is set, and what about it?", [ERRORS], seen)
    assert answers.follows_from("The error is ErrNotFound (route.go:70).", part) == follows


def test_line_of_a_caller_agrees_with_the_function_that_it_calls() -> None:
    task = "Where are the z-scores computed?"
    caller = judge(task, "In `zscores_of`.", "scores.iter().filter(too_far).count()", ZSCORES, SCORES)
    assert caller.text is not None and "src/scores.rs:5" in caller.text
    other = judge(task, "In `zscores_of`.", "Config { case_sensitive }", ZSCORES, DECIDES)
    assert other.text is None
    assert other.problem == "the line that the model copies is not of the code that it names"


def test_line_of_the_likeliest_code_is_the_place_although_the_answer_has_a_name_of_other_code() -> None:
    cuts = excerpt(
        "src/blocker.rs",
        312,
        "fn cut_parameters(cut_filters: &FilterList) {\n    for cut_filter in cut_filters.check_all() {\n"
        "        params.retain(|param| cut_filter.keeps(param));\n    }\n}",
        "cut_parameters",
    )
    other = excerpt("src/lists.rs", 20, "fn keep_params(url: &str) -> bool {\n    true\n}", "keep_params")
    task = "Where are tracking parameters cut out of a query string?"
    said = "`cut_filters.check_all` gives each `cut_filter`, which says by `keep_params` what is cut out."
    judged = judge(task, said, "for cut_filter in cut_filters.check_all() {", cuts, other)
    assert judged.text is not None and judged.place == "src/blocker.rs:313"


def test_cited_line_tells_the_text_that_a_short_part_asks_for() -> None:
    raised = excerpt("cache.py", 70, 'if size > self.maxsize:\n    raise ValueError("value too large")')
    seen = seen_of(raised)
    answers = CodeAnswers(
        "Which exception is raised for a large value, and with which message?", [raised], seen
    )
    known = "A ValueError is raised (cache.py:71, in __setitem__)."
    assert (
        answers.follows_from(known, "With which message?")
        == '`raise ValueError("value too large")` (cache.py:71).'
    )
    assert answers.follows_from("A ValueError is raised (cache.py:70).", "With which message?") is None


def test_finding_of_another_agent_is_confirmed_by_the_code() -> None:
    """The next agent of a team gets what the last one found, which asks nothing."""
    finding = "The scores are computed by `zscores_of` (src/scores.rs:5)."
    line = "fn zscores_of(xs: &[f64]) -> Vec<f64> {"
    same = judge(finding, "`zscores_of` computes the scores.", line, ZSCORES, SCORES)
    assert same.text == "`zscores_of` computes the scores (src/scores.rs:5)."
    other = judge(finding, "`zscores_of` computes the scores.", "none", DECIDES)
    assert other.text is None


OFFSET = excerpt("lib/request.js", 376, "  var offset = this.app.get('subdomain offset');", "subdomains")
DEFAULTS = excerpt(
    "lib/application.js", 95, "  this.set('etag', 'weak');\n  this.set('subdomain offset', 2);"
)


def test_number_is_cited_where_it_stands() -> None:
    task, quote = "What is the default of the subdomain offset setting?", "this.app.get('subdomain offset');"
    judged = judge(task, "The default of the subdomain offset is 2.", quote, OFFSET, DEFAULTS)
    assert judged.text == "The default of the subdomain offset is 2 (lib/application.js:96)."


def test_number_is_cited_at_its_line_if_the_model_copies_the_first_line_of_the_function() -> None:
    reads = excerpt(
        "input.c",
        84,
        "device_read_many(int fd)\n{\n    // read this many events\n    struct input_event event[64];\n"
        "    return read(fd, event, 64 * sizeof(event));\n}",
        "device_read_many",
    )
    task = "How many waiting events are fetched at most with a single read of a device?"
    said = "The function `device_read_many` fetches up to 64 events with a single read."
    judged = judge(task, said, "device_read_many(int fd)", reads)
    assert judged.text is not None and judged.place == "input.c:87"
    assert "64 events with a single read (input.c:87, in device_read_many at input.c:84)" in judged.text


def test_number_without_a_copied_line_is_cited_where_it_stands() -> None:
    picks = excerpt("words.go", 15, "func randomWord() string {\n\treturn words[pick(2048)]\n}", "randomWord")
    makes = excerpt(
        "age.go",
        328,
        "func makePassphrase() string {\n\tfor i := 0; i < 10; i++ {\n\t\twords.add(randomWord())",
        "makePassphrase",
    )
    task = "How many words has the passphrase that is made up?"
    judged = judge(task, "The passphrase has 10 words.", "", picks, makes)
    assert judged.text == "The passphrase has 10 words (age.go:329, in makePassphrase at age.go:328)."
    assert judge(task, "The passphrase has 12 words.", "", picks, makes).text is None


def test_name_that_an_answer_gives_for_a_number_is_followed_to_its_value() -> None:
    sends = excerpt(
        "delegate.go", 9, "type Delegate interface {\n\tNodeMeta(limit int) []byte\n}", "Delegate"
    )
    limit = excerpt("net.go", 84, "\tMetaMaxSize = 512 // Maximum size for node meta data\n")
    task = "How many bytes may the data returned by NodeMeta have at most?"
    said = "The data returned by NodeMeta may have at most MetaMaxSize bytes."
    judged = judge(task, said, "NodeMeta(limit int) []byte", sends, limit)
    assert judged.text is not None
    assert "MetaMaxSize = 512" in judged.text
    assert judged.place == "net.go:84"


def test_line_with_one_number_answers_if_the_model_only_describes_it() -> None:
    stops = excerpt(
        "Queue.java",
        30,
        "public void stop() {\n    thread.interrupt();\n    stopMutex.wait(10000);\n    retries = 1;\n}",
        "stop",
    )
    task = "For how long does stopping wait at most for the queue's thread?"
    said = "The code waits on the `stopMutex` until the thread of the queue has ended."
    judged = judge(task, said, "stopMutex.wait(10000);", stops)
    assert judged.text is not None and "`stopMutex.wait(10000);` (Queue.java:32" in judged.text
    for line in ("thread.interrupt();", "retries = 1;"):
        refused = judge(task, "The code stops the thread of the queue.", line, stops)
        assert refused.text is None


def test_digit_in_a_text_is_no_value_of_its_name() -> None:
    sends = excerpt(
        "server.c",
        450,
        'static bool send_chunk(Request* request) {\n    request->rest_left = from_string("0\\r\\n");\n'
        "    return write(request->fd, request->rest_left);\n}",
        "send_chunk",
    )
    said = "The `send_chunk` function asks for the size of `rest_left`."
    task = "When the server sends a chunk, how many bytes does it ask for at a time?"
    judged = judge(task, said, "return write(request->fd, request->rest_left);", sends)
    assert judged.text is None and judged.problem == "the answer gives no number that this code contains"


def test_lines_that_give_a_name_the_same_number_agree() -> None:
    waits = excerpt("server.c", 97, "  timer_init(&watcher, on_tick, 0., CHECK_INTERVAL);", "run")
    made = excerpt("Makefile", 33, "FEATURES += -D CHECK_INTERVAL=0.1")
    task = "At which interval does the server check for signals?"
    for other, agrees in (("0.1", True), ("0.5", False)):
        setup = excerpt("setup.py", 9, f"CHECK_INTERVAL = os.environ.get('CHECK_INTERVAL', '{other}')")
        seen = seen_of(waits, made, setup)
        reply = {"answer": "It checks every 10 seconds.", "quote": waits.lines[0][1], "shown": True}
        judged = CodeAnswers(task, [waits, made, setup], seen, values=[made, setup]).judge(task, reply)
        assert (judged.text is not None and "CHECK_INTERVAL=0.1` (Makefile:33" in judged.text) is agrees


def test_number_from_elsewhere_is_refused() -> None:
    task, quote = "What is the default of the subdomain offset setting?", "this.app.get('subdomain offset');"
    judged = judge(task, "The default of the subdomain offset is 1000.", quote, OFFSET, LIMITS)
    assert judged.text is None
    assert judged.problem == "the code that the answer cites does not contain its number 1000"


def test_name_is_cited_where_it_stands() -> None:
    warns = excerpt(
        "cache.ts", 50, "  emitWarning(msg, 'UnboundedCacheWarning', code)  // it may grow without bound\n"
    )
    other = excerpt("warn.ts", 3, "const shouldWarn = (code) => !warned.has(code)\n", "shouldWarn")
    task = "Which name does the warning have about a cache that may grow without bound?"
    line = "const shouldWarn = (code) => !warned.has(code)"
    judged = judge(task, "The warning has the name 'UnboundedCacheWarning'.", line, other, warns)
    assert judged.text == "The warning has the name 'UnboundedCacheWarning' (cache.ts:50)."


def test_one_unit_of_time_is_a_number() -> None:
    ticks = excerpt(
        "db.go",
        547,
        "func (db *DB) manager() {\n\tt := time.NewTicker(time.Second)\n\tdb.expire()",
        "DB.manager",
    )
    task = "How often does the DB manager look for what is to expire?"
    for unit, is_accepted in (("second", True), ("hour", False)):
        judged = judge(task, f"The manager looks every {unit}.", "t := time.NewTicker(time.Second)", ticks)
        assert (judged.text is not None) is is_accepted


def test_step_of_a_counter_is_no_number_that_was_asked_for() -> None:
    counts = excerpt(
        "walk.rs",
        302,
        "    Interrupted => {\n        errors.interrupted += 1;\n        if errors.interrupted > 999 {",
        "skip_directory",
    )
    task = "After how many interrupted errors is a directory skipped?"
    line = "errors.interrupted += 1;"
    wrong = judge(task, "After 1 interrupted error, a directory is skipped.", line, counts)
    assert wrong.text is None
    right = judge(task, "After 999 interrupted errors, a directory is skipped.", line, counts)
    assert right.text is not None


def test_text_about_something_else_is_refused() -> None:
    code = excerpt("throttle.go", 46, 'panic("expects a limit")\nhttp.Error(w, "server capacity exceeded")')
    task = "Which status does the throttle answer with when its capacity is exceeded, and with which message?"
    parts = {"part": "With which message?", "known": "It answers with TooManyRequests."}
    other = judge(task, "The message is there.", 'panic("expects a limit")', code, **parts)
    assert other.text is None and other.problem == "the text that the model copies is about something else"
    right = judge(task, "The message is there.", 'http.Error(w, "server capacity exceeded")', code, **parts)
    assert right.text == '`http.Error(w, "server capacity exceeded")` (throttle.go:47).'


def test_copied_line_may_have_other_quotation_marks() -> None:
    code = excerpt(
        "main.py",
        152,
        'def set_key(mode):\n    if mode not in ("always", "auto"):\n        fail()',
        "set_key",
    )
    judged = judge("Where is the mode checked?", "In `set_key`.", "if mode not in ('always', 'auto'):", code)
    assert judged.text == "In `set_key` (main.py:152)."


def test_answer_that_names_nothing_needs_a_word_of_the_question() -> None:
    task, quote = "Which runs count as outliers?", "scores.iter().filter(too_far).count()"
    beside = judge(task, "If the path does not exist, it fails.", quote, SCORES)
    assert beside.text is None and beside.problem == "the answer has nothing to do with the task"
    assert judge(task, "The runs that are too far are outliers.", quote, SCORES).text is not None


ABOUT_ELSE = "the code that the answer cites is about something else"
CI = excerpt("ci.yml", 27, "  build:\n    timeout-minutes: 1\n    strategy: fast")


def test_value_in_code_about_something_else_is_refused() -> None:
    task = "After how many minutes of life is a connection replaced?"
    judged = judge(task, "A connection is replaced after 1 minute of life.", "timeout-minutes: 1", CI)
    assert judged.unrelated == ABOUT_ELSE


def test_answer_that_repeats_the_question_about_other_code_is_refused() -> None:
    task = "To which file are waiting jobs saved when the process ends, and where is it read again?"
    size = excerpt("queue.ts", 494, "get size(): number {\n  return this.queue.size;\n}", "size")
    said = "Waiting jobs are saved to `this.queue` when the process ends."
    part = "To which file are waiting jobs saved when the process ends?"
    judged = judge(task, said, "return this.queue.size;", size, part=part)
    assert judged.unrelated == ABOUT_ELSE


def test_number_needs_two_words_of_the_question() -> None:
    task = "How many bytes does a block have by default?"
    colors = excerpt("colors.rs", 59, "const fn rgb_bytes(r: u8) -> [u8; 19] {", "rgb_bytes")
    wrong = judge(task, "The block has 19 bytes.", "const fn rgb_bytes(r: u8) -> [u8; 19] {", colors)
    assert wrong.unrelated == ABOUT_ELSE
    block = excerpt("main.rs", 32, "const DEFAULT_BLOCK_BYTES: i64 = 512;")
    right = judge(task, "The block has 512 bytes.", "const DEFAULT_BLOCK_BYTES: i64 = 512;", colors, block)
    assert right.text == "The block has 512 bytes (main.rs:32)."


def test_number_in_a_comment_is_about_the_lines_beside_it() -> None:
    options = excerpt(
        "retry.ts",
        15,
        "type RetryOptions = {\n\t/**\n\tThe number of times to retry failed requests.\n\n\t@default 2\n"
        "\t*/\n\tlimit?: number;\n};",
        "RetryOptions",
    )
    task = "How many times is a failed request sent again if I configure nothing?"
    said = "If you configure nothing, the `limit` option is 2."
    judged = judge(task, said, "@default 2", options)
    assert judged.text is not None
    assert judged.text.endswith("the `limit` option is 2 (retry.ts:19, in RetryOptions at retry.ts:15).")


QUITS = excerpt(
    "kilo.c",
    1204,
    '    if (dirty && quit_times) {\n        set_message("File has unsaved changes. "\n'
    '            "Press Ctrl-Q %d more times to quit.", quit_times);\n    }',
)
QUIT_TIMES = excerpt("kilo.c", 1187, "#define KILO_QUIT_TIMES 3", "KILO_QUIT_TIMES")


def test_copied_line_says_what_a_number_elsewhere_is_about() -> None:
    task = "How many more times do I have to press the quit key after the warning about unsaved changes?"
    quote = 'set_message("File has unsaved changes. Press Ctrl-Q %d more times to quit.", quit_times);'
    judged = judge(task, "You have to press the quit key 3 more times.", quote, QUIT_TIMES, QUITS)
    assert judged.text is not None and "(kilo.c:1187" in judged.text


def test_answer_to_which_option_must_be_about_an_option() -> None:
    code = excerpt("lib.rs", 592, "fn print_byte(b: u8) {\n    array.print(b);\n}", "print_byte")
    task = "Which option prints the bytes as an array?"
    judged = judge(task, "`print_byte` prints the bytes of the array.", "array.print(b);", code)
    assert judged.text is None and judged.problem == "the answer does not speak of what was asked for"
    flag = excerpt("main.rs", 9, "/// Print the bytes as an array.\n#[arg(long)]\ninclude: bool,", line=11)
    assert judge(task, "`include` prints the bytes as an array.", "include: bool,", flag).text


def test_line_that_is_copied_with_a_slip_is_found() -> None:
    detect = excerpt(
        "linux.rs",
        15,
        'fn detect_ping() {\n    let output = run("ping");\n    if stderr.contains("BusyBox") {\n'
        "        alpine()\n    }\n}",
        "detect_ping",
    )
    task = "How does it detect the variant of the ping program?"
    said = "`detect_ping` looks for BusyBox in the output of the ping program."
    judged = judge(task, said, 'if stdout.contains("BusyBox")', detect)
    assert judged.text is not None and "linux.rs:17" in judged.text
    vague = "It looks for the right program."
    other = judge(task, vague, 'while input.begins("GNU tools") and more', detect)
    assert other.text is None and other.problem == "the answer copies no line of this code"


def test_answer_without_a_copied_line_cites_the_line_with_most_of_its_words() -> None:
    recipe = excerpt(
        "recipes.py",
        10,
        "def memoize(cache):\n    # a random number simulates a miss\n    # in a separate thread\n    go()",
        "memoize",
    )
    task = "How does memoize decide to compute a result again?"
    said = "A random number simulates a miss, and a separate thread computes the result."
    judged = judge(task, said, "", recipe)
    assert judged.text is not None and "recipes.py:11" in judged.text
    elsewhere = judge(task, "It asks the server for newer data and compares both versions.", "", recipe)
    assert elsewhere.text is None and elsewhere.problem == "the answer copies no line of this code"


def test_value_without_a_copied_line_cites_the_line_with_its_name() -> None:
    load = excerpt("core.py", 150, "def load_env():\n    return os.environ['KEYRING_BACKEND']", "load_env")
    task = "Which environment variable chooses the backend?"
    judged = judge(task, "The environment variable is `KEYRING_BACKEND`.", "", load)
    assert judged.text is not None and "core.py:151" in judged.text


def test_dirs_are_directories() -> None:
    ignored = excerpt("options.rs", 46, 'const DEFAULT_IGNORE_DIRS: &[&str] = &["/proc", "/dev"];')
    task = "Which directories does --ignore-dirs contain by default?"
    said = '`DEFAULT_IGNORE_DIRS` is `&["/proc", "/dev"]`.'
    judged = judge(task, said, 'const DEFAULT_IGNORE_DIRS: &[&str] = &["/proc", "/dev"];', ignored)
    assert judged.text is not None and "options.rs:46" in judged.text


def test_sentence_about_what_a_dropped_one_names_is_left_out() -> None:
    task = "Where are tasks of a queue stored?"
    queue = excerpt(
        "queue.py", 8, "class Queue:\n    def store(self, task):\n        self.tasks.append(task)", "Queue"
    )
    said = "`QueueManager` stores the tasks of a queue. The method appends a task to `self.tasks`."
    judged = judge(task, said, "self.tasks.append(task)", queue)
    assert judged.text is None or "The method" not in judged.text


def test_function_that_only_the_question_names_is_invented() -> None:
    serve = excerpt("server.js", 31, "function HttpServer(file) {\n  this.page = file\n}", "HttpServer")
    task = "Where does it reload the page after a file has changed?"
    said = "The page is loaded again by the `reload` function."
    judged = judge(task, said, "", serve)
    assert judged.text is None and "reload" in judged.problem


def test_sentence_may_name_other_shown_code_of_the_same_file() -> None:
    move = excerpt("move.js", 30, "function rename(a, b) {\n  moveAcrossDevice(a, b)\n}", "rename")
    across = excerpt(
        "move.js", 40, "function moveAcrossDevice(a, b) {\n  copySync(a, b)\n}", "moveAcrossDevice"
    )
    said = "`rename` calls `moveAcrossDevice`, which uses `copySync`."
    judged = judge("How is a file moved where rename fails?", said, "moveAcrossDevice(a, b)", move, across)
    assert judged.text is not None and "copySync" in judged.text and "move.js:31" in judged.text


def test_words_of_the_question_do_not_deny_the_answer() -> None:
    task = "Where does it care about days on which there is no midnight?"
    wrap = excerpt("spec.go", 54, "func Next() {\n    // days without midnight\n    if hour != 0 {\n", "Next")
    judged = judge(task, "`Next` cares about days on which there is no midnight.", "if hour != 0 {", wrap)
    assert judged.text is not None and "spec.go" in judged.text


def test_seconds_may_be_told_for_thousandths() -> None:
    proxy = excerpt("config.go", 27, "const proxyTimeout = 5000 // milliseconds until the proxy gives up")
    task = "How long does the proxy try before it gives up if I set nothing?"
    said = "The proxy gives up after 5000 milliseconds (5 seconds)."
    assert judge(task, said, "const proxyTimeout = 5000", proxy).text is not None


def test_sentence_of_an_explanation_from_elsewhere_is_left_out() -> None:
    said = "A frame is masked with the bytes of `random(4)`. `advanceFrame` returns `noFrame`. It then ends."
    judged = judge("How are the bytes of a frame masked?", said, "return random(4)", MASK_KEY, ADVANCE)
    assert judged.text is not None
    assert judged.text.startswith("A frame is masked with the bytes of `random(4)` (conn.go:191")


def test_explanation_of_either_of_two_pieces_that_are_about_as_likely_is_related() -> None:
    locates = excerpt("error.ts", 221, "function locate(stack) {\n  return split(stack)\n}", "locate")
    formats = excerpt(
        "error.ts", 207, "function format(lines) {\n  return lines.filter(isError)\n}", "format"
    )
    task, seen = "How are the lines picked that tell what went wrong?", seen_of(locates, formats)
    reply = {
        "answer": "`format` filters by `isError`.",
        "quote": "return lines.filter(isError)",
        "shown": True,
    }
    first = CodeAnswers(task, [locates, formats], seen, likeliest=[locates]).judge(task, reply)
    either = CodeAnswers(task, [locates, formats], seen, likeliest=[locates, formats]).judge(task, reply)
    assert first.unrelated == "the answer explains other code than the likeliest"
    assert either.unrelated != first.unrelated


def test_explanation_of_code_with_as_many_words_as_the_best_counts() -> None:
    task = "How do I tell the pool that a connection is broken?"
    stack = excerpt("stack.rb", 19, "class Stack\n  # connections of a pool\nend", "Stack")
    discard = excerpt(
        "pool.rb",
        107,
        "def discard_connection\n  pool.drop(connection)\nend",
        "discard_connection",
    )
    said = "With `discard_connection`, the pool drops the connection."
    judged = judge(task, said, "pool.drop(connection)", stack, discard)
    assert judged.text is not None and "pool.rb:108" in judged.text


DEBUG = excerpt(
    "fsnotify.go",
    389,
    'var debug = func() bool {\n\treturn os.Getenv("WATCH_DEBUG") == "1"\n}()',
    "debug",
)


def test_longest_of_several_copied_lines_is_the_place() -> None:
    task = "Can debug messages of the watch be seen?"
    other = excerpt("main.go", 5, "func help() {\n\tfunc() bool {\n\t}()\n}", "help")
    quote = 'var debug = func() bool { return os.Getenv("WATCH_DEBUG") == "1" }()'
    judged = judge(task, "Yes, the watch has `debug`, set by `WATCH_DEBUG`.", quote, other, DEBUG)
    assert judged.text is not None and "fsnotify.go:390" in judged.text


def test_text_between_two_marked_names_is_no_code() -> None:
    said = "Yes, `debug` of the watch is true (if it is `1`), by `WATCH_DEBUG`."
    quote = 'return os.Getenv("WATCH_DEBUG") == "1"'
    assert judge("Can debug messages of the watch be seen?", said, quote, DEBUG).text


def test_yes_needs_two_words_of_the_question() -> None:
    task = "Is there a switch that prints what is done?"
    usage = excerpt("main.go", 44, 'switch f {\ncase "-h":\n\thelp(f)\n}', "main")
    judged = judge(task, "The switch statement calls `help` for `-h`.", "switch f {", usage)
    assert judged.text is None and not judged.problem


def test_value_is_cited_where_its_name_is_if_the_model_copies_another_line() -> None:
    load = excerpt(
        "core.py",
        150,
        "def load_env():\n    return load(os.environ['APP_BACKEND'])\n\n\n"
        "def config_path():\n    return root / 'rc'",
        "load_env",
    )
    task = "Which environment variable chooses the backend?"
    judged = judge(task, "The environment variable `APP_BACKEND` chooses it.", "return root / 'rc'", load)
    assert judged.text is not None and judged.place == "core.py:151"


def test_condition_that_something_is_not_given_does_not_say_that_the_code_lacks_it() -> None:
    merge = excerpt(
        "utils.ts",
        121,
        "function mergeHeaders(input, defaults) {\n  if (!defaults) { return input }\n"
        "  return join(input, defaults)\n}",
        "mergeHeaders",
    )
    said = "`mergeHeaders` joins the headers. If `defaults` is not provided, it returns `input`."
    task = "Where are the default headers joined with the input?"
    assert judge(task, said, "return join(input, defaults)", merge).text is not None
    assert judge(task, "The code is not provided.", "return join(input, defaults)", merge).text is None


def test_yes_needs_most_words_of_the_question() -> None:
    """A passage on search and reading does not say that one can search in what one reads."""
    task = "Can I search for a word inside the document I am reading?"
    passage = excerpt("README.md", 128, "Glow will search the repo. Files can be read with a pager.")
    said = "Yes, you can search for a word inside the document you are reading."
    judged = judge(task, said, "Files can be read with a pager.", passage)
    assert judged.text is None and "about something else" in judged.why


def test_explanation_of_the_best_code_counts_although_less_of_it_was_shown() -> None:
    whole = excerpt("a.py", 1, "def mask(x):\n    y = random(4)\n    return apply(y)\n    z()", "mask")
    seen = seen_of(whole)
    task = "How are bytes of outgoing frames scrambled before sending?"
    answers = CodeAnswers(task, [whole], seen, likeliest=[replace(whole, lines=whole.lines[:3])])
    judged = answers.judge(
        task, {"answer": "`mask` applies `random`.", "quote": "y = random(4)", "shown": True}
    )
    assert "other code" not in judged.unrelated
