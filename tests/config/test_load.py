"""Settings are merged from four sources; each problem names the file, the key and a remedy (P8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retinue.config import LoadedSettings, load_settings, load_settings_file
from retinue.config.settings import NetworkSettings
from retinue.core import ConfigInvalid


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def personal(tmp_path: Path) -> Path:
    return tmp_path / "user" / "retinue.toml"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def complaint(project: Path, personal: Path, **layers: Any) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        load_settings(directory=project, user=personal, environment=layers.get("environment", {}))
    return caught.value.message


def ignored(project: Path, personal: Path) -> str:
    """What of the project's file does not count, with the reasons. No value of the file is in force."""
    loaded = load_settings(directory=project, user=personal, environment={})
    assert loaded.origins == {}
    return "\n".join(map(str, loaded.ignored))


def test_defaults_hold_when_nothing_is_given(project: Path, personal: Path) -> None:
    loaded = load_settings(directory=project, user=personal, environment={})
    settings = loaded.settings
    assert (settings.limits.max_files_read, settings.limits.max_bytes_read) == (50, 1_048_576)
    assert (settings.runtime.default_deadline_ms, settings.runtime.max_concurrent_tasks) == (30_000, 4)
    assert settings.roots == ()
    assert loaded.origins == {}


def test_later_sources_win_and_each_value_names_its_origin(project: Path, personal: Path) -> None:
    keys = ("max_files_read", "max_bytes_read", "max_file_bytes", "max_response_tokens")
    file = write(
        project / "retinue.toml",
        "[limits]\n" + "".join(f"{key} = 1{index}\n" for index, key in enumerate(keys[:3])),
    )
    write(personal, "[limits]\nmax_bytes_read = 201\nmax_file_bytes = 202\nmax_response_tokens = 203\n")
    environment = {"RETINUE_LIMITS__MAX_FILE_BYTES": "302", "RETINUE_LIMITS__MAX_RESPONSE_TOKENS": "303"}
    flags = {"limits.max_response_tokens": 403}
    loaded = load_settings(directory=project, user=personal, environment=environment, flags=flags)
    limits = loaded.settings.limits
    assert (limits.max_files_read, limits.max_bytes_read) == (10, 201)
    assert (limits.max_file_bytes, limits.max_response_tokens) == (302, 403)
    assert loaded.origins == {
        "limits.max_files_read": str(file),
        "limits.max_bytes_read": str(personal),
        "limits.max_file_bytes": "RETINUE_LIMITS__MAX_FILE_BYTES",
        "limits.max_response_tokens": "--limits-max-response-tokens",
    }


def test_camel_case_spellings_are_accepted_beside_snake_case(project: Path, personal: Path) -> None:
    write(personal, "[limits]\nmaxFilesRead = 7\n[runtime]\ndefaultDeadlineMs = 9\nmaxConcurrentTasks = 2\n")
    settings = load_settings(directory=project, user=personal, environment={}).settings
    assert settings.limits.max_files_read == 7
    assert (settings.runtime.default_deadline_ms, settings.runtime.max_concurrent_tasks) == (9, 2)


def test_project_file_is_found_from_a_folder_below(project: Path, personal: Path) -> None:
    write(project / "retinue.toml", "log_level = 'debug'\n")
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    assert load_settings(directory=below, user=personal, environment={}).settings.log_level == "debug"


def test_relative_roots_are_relative_to_their_settings_file(project: Path, personal: Path) -> None:
    write(project / "retinue.toml", 'roots = [".", "docs"]\n')
    assert load_settings(directory=project, user=personal, environment={}).settings.roots == (
        project,
        project / "docs",
    )


def test_lists_come_from_the_environment(project: Path, personal: Path) -> None:
    environment = {
        "RETINUE_ROOTS": "/a:/b",
        "RETINUE_TOOLS__GROUPS": "all",
        "RETINUE_POLICY__DENY": "*.sql, x/**",
    }
    settings = load_settings(directory=project, user=personal, environment=environment).settings
    assert settings.roots == (Path("/a"), Path("/b"))
    assert settings.tools.groups == ("all",)
    assert settings.policy.deny == ("*.sql", "x/**")


def test_variables_that_mark_a_run_are_not_settings(project: Path, personal: Path) -> None:
    environment = {"RETINUE_RUN_ID": "abc", "RETINUE_CHILD_TOKEN": "t", "OTHER": "1"}
    assert load_settings(directory=project, user=personal, environment=environment).origins == {}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "[limits]\nmax_file_read = 5\n",
            ["limits.max_file_read", "5", "did you mean limits.max_files_read"],
        ),
        ("max_concurrent_task = 5\n", ["no such setting; did you mean runtime.max_concurrent_tasks?"]),
        (
            "[limits]\nmaxFilesRead = 'many'\n",
            ["limits.maxFilesRead", "'many'", "must be an integer of at least 1"],
        ),
        ("[limits]\nmax_files_read = 0\n", ["limits.max_files_read = 0", "at least 1"]),
        ("roots = ['~nobody-here/x']\n", ["a list of paths"]),
        ("[limits]\nmax_files_read = true\n", ["= True", "an integer"]),
        ("[limits]\nmax_files_read = 1.5\n", ["= 1.5", "an integer"]),
        (
            "[runtime]\npatience_s = 3601\n",
            ["runtime.patience_s = 3601", "must be an integer from 1 to 3600"],
        ),
        ("roots = '/a'\n", ["roots = '/a'", "a list of paths"]),
        ("roots = ['']\n", ["a list of paths"]),
        ("roots = [3]\n", ["a list of paths"]),
        ("log_level = 'loud'\n", ["'loud'", "one of: debug, info, warning, error"]),
        ("allow_host_roots = 'yes'\n", ["true or false"]),
        ("limits = 3\n", ["limits = 3", "table of settings"]),
        ("[tools]\ngroups = ['cooking']\n", ["tools.groups", "a list of: core"]),
        ("[log_level]\nx = 1\n", ["log_level", "one of: debug"]),
        ("[limits\n", ["not valid TOML", "line 1"]),
        ("[frobnicate]\nx = 1\n", ["frobnicate", "no such setting", "the top level has: roots"]),
    ],
)
def test_wrong_setting_is_rejected_with_file_key_and_remedy(
    project: Path, personal: Path, text: str, parts: list[str]
) -> None:
    message = complaint(project, write(personal, text))
    for part in [str(personal), *parts]:
        assert part in message


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("RETINUE_LIMITS__MAX_FILES", "3", "did you mean RETINUE_LIMITS__MAX_FILES_READ?"),
        ("RETINUE_LIMITS__MAX_FILES_READ", "3 files", "an integer"),
        ("RETINUE_ALLOW_HOST_ROOTS", "maybe", "true or false"),
        ("RETINUE_LOG_FORMAT", "xml", "one of: text, json"),
    ],
)
def test_wrong_variable_is_rejected_by_its_own_name(
    project: Path, personal: Path, name: str, value: str, part: str
) -> None:
    message = complaint(project, personal, environment={name: value})
    assert name in message
    assert part in message


def test_all_problems_are_reported_at_once(project: Path, personal: Path) -> None:
    write(personal, "log_level = 1\nlog_format = 2\n[limits]\nmax_files_read = -1\n")
    assert complaint(project, personal).startswith("3 settings are wrong")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"\x80abc"], ids=["utf-16", "latin-1"])
def test_file_that_is_not_text_is_rejected(project: Path, personal: Path, data: bytes) -> None:
    write(personal, "").write_bytes(data)
    assert "not UTF-8" in complaint(project, personal)


def test_byte_order_mark_and_crlf_are_accepted(project: Path, personal: Path) -> None:
    write(personal, "").write_bytes(b"\xef\xbb\xbflog_level = 'debug'\r\n[limits]\r\nmax_files_read = 3\r\n")
    settings = load_settings(directory=project, user=personal, environment={}).settings
    assert (settings.log_level, settings.limits.max_files_read) == ("debug", 3)


@pytest.mark.parametrize(
    "text",
    [
        "data_dir = '/tmp/x'\n",
        "allow_host_roots = true\n",
        "[policy]\nallow = ['.env']\n",
        "[http]\nallowed_hosts = ['evil:1']\n",
        "[models]\nendpoint = 'http://evil/v1'\n",
    ],
)
def test_cloned_project_cannot_widen_what_is_read_or_reached(
    project: Path, personal: Path, text: str
) -> None:
    """P6: a project's settings file does not speak for the user."""
    write(project / "retinue.toml", text)
    message = ignored(project, personal)
    assert "ignored: a project may not set this" in message
    assert f"put it in {personal}" in message


@pytest.mark.parametrize("root", ["..", "/", "~", "link"])
def test_cloned_project_cannot_name_roots_outside_itself(project: Path, personal: Path, root: str) -> None:
    """P6: neither by name nor through a link."""
    (project / "link").symlink_to("/")
    write(project / "retinue.toml", f'roots = ["{root}"]\n')
    assert "inside the project" in ignored(project, personal)


def test_commands_are_tables_with_user_chosen_names(project: Path, personal: Path) -> None:
    write(
        personal,
        '[commands.review-it]\nargv = ["tool", "{prompt}"]\ntimeoutMs = 5\n'
        '[commands.review-it.env]\nKEY = "${KEY}"\n[commands.Other]\nargv = ["x"]\n',
    )
    loaded = load_settings(directory=project, user=personal, environment={})
    assert list(loaded.settings.commands) == ["Other", "review-it"]
    review = loaded.settings.commands["review-it"]
    assert (review.argv, review.timeout_ms, review.env) == (("tool", "{prompt}"), 5, {"KEY": "${KEY}"})
    assert loaded.origins["commands.review-it.timeout_ms"] == str(personal)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[commands.x]\ndescription = 'd'\n", "commands.x.argv: is missing"),
        ("[commands.x]\nargv = 'ls -l'\n", "a list of strings"),
        ("[commands.x]\nargv = ['a']\nshell = true\n", "commands.x.shell"),
        ("[commands.x]\nargv = ['a']\nenv = {A = 1}\n", "a table of strings"),
        ("[commands.'../x']\nargv = ['a']\n", "no such setting"),
        ("[commands]\nx = 'ls'\n", "commands.x"),
    ],
)
def test_wrong_command_is_rejected(project: Path, personal: Path, text: str, part: str) -> None:
    assert part in complaint(project, write(personal, text))


def test_cloned_project_cannot_define_commands(project: Path, personal: Path) -> None:
    """P7: a command is a program that a model may start."""
    write(project / "retinue.toml", "[commands.x]\nargv = ['sh', '-c', 'evil']\n")
    assert "a project may not set this" in ignored(project, personal)


def test_checking_a_file_reports_its_problems(tmp_path: Path) -> None:
    assert (
        load_settings_file(write(tmp_path / "good.toml", "log_level = 'info'\n")).settings.log_level == "info"
    )
    with pytest.raises(ConfigInvalid, match="no such setting"):
        load_settings_file(write(tmp_path / "bad.toml", "x = 1\n"))
    with pytest.raises(ConfigInvalid, match="no such file"):
        load_settings_file(tmp_path / "none.toml")


MODELS = """
[models.endpoints.big]
url = "http://127.0.0.1:8000"
apiKeyEnv = "BIG_KEY"
[models.tiers.strong]
endpoint = "big"
"""


def test_model_endpoints_have_user_chosen_names(project: Path, personal: Path) -> None:
    write(personal, MODELS)
    loaded = load_settings(
        directory=project, user=personal, environment={"RETINUE_MODELS__TIERS__FAST__MODEL": "tiny"}
    )
    models = loaded.settings.models
    assert (models.endpoints["big"].url, models.endpoints["big"].api_key_env) == (
        "http://127.0.0.1:8000",
        "BIG_KEY",
    )
    assert models.endpoints["big"].slots is None
    assert (models.tiers.strong.endpoint, models.tiers.fast.model) == ("big", "tiny")
    assert loaded.origins["models.endpoints.big.url"] == str(personal)


def test_project_cannot_set_model_endpoints(project: Path, personal: Path) -> None:
    """P6: it could send everything to a server of its own."""
    write(project / "retinue.toml", MODELS + "[models]\nendpoint = 'http://example.com'\n")
    message = ignored(project, personal)
    for key in ("models.endpoint ", "models.endpoints.big.url", "models.tiers.strong.endpoint"):
        assert key in message
    assert message.count("a project may not set this") == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[models.endpoints.big]\n",
            "retinue.toml: models.endpoints.big.url: is missing; it must be a string",
        ),
        ("[models.endpoints.big]\nslots = 2\n", "models.endpoints.big.url: is missing; it must be a string"),
        ("[models.endpoints.big]\nurl = 'x'\nslots = 0\n", "an integer of at least 1"),
        ("[models.endpoints.big]\nurl = 'x'\nkey = 'secret'\n", "no such setting"),
        ("[models.tiers.fats]\nmodel = 'x'\n", "did you mean models.tiers.fast.model?"),
        ("[models]\ntiers = 3\n", "must be a table of settings"),
        ("[models.endpoints]\nbig = 'http://x'\n", "no such setting"),
    ],
)
def test_invalid_model_settings_are_reported(project: Path, personal: Path, text: str, words: str) -> None:
    write(personal, text)
    assert words in complaint(project, personal)


DOOR = (
    '[network]\nweb = true\nallow_private = ["127.0.0.1:1"]\ndeny_hosts = ["a.example"]\nsearch = "brave"\n'
)


def load_door(tmp_path: Path, user: str, project: str = "", **environment: str) -> LoadedSettings:
    (tmp_path / "user.toml").write_text(user, encoding="utf-8")
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "project" / "retinue.toml").write_text(project, encoding="utf-8")
    return load_settings(directory=tmp_path / "project", user=tmp_path / "user.toml", environment=environment)


def test_only_the_users_own_file_opens_the_web_P7(tmp_path: Path) -> None:
    assert not load_door(tmp_path, "").settings.network.web
    assert load_door(tmp_path, DOOR).settings.network.web
    by_project = load_door(tmp_path, "", DOOR)
    assert by_project.settings.network == NetworkSettings(deny_hosts=("a.example",))
    assert "may only switch this off" in str(by_project.ignored[0])
    variables = {
        "RETINUE_NETWORK__WEB": "true",
        "RETINUE_NETWORK__ALLOW_PRIVATE": "10.0.0.1",
        "RETINUE_NETWORK__SEARCH": "brave",
    }
    by_variable = load_door(tmp_path, "", **variables)
    assert by_variable.settings.network == NetworkSettings()
    assert len(by_variable.ignored) == 3
    assert all("user.toml" in str(problem) for problem in by_variable.ignored)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ('deny_hosts = ["https://evil.example/"]', "without `https://`"),
        ('deny_hosts = ["evil.example:443"]', "without `https://`"),
        ('allow_hosts = ["docs.example/3/"]', "without `https://`"),
        ('allow_private = ["http://127.0.0.1:8080"]', "without `http://`"),
        ('search_url = "127.0.0.1:8080/search"', "begins with `http://` or `https://`"),
        ('pypi = "pypi.corp.example"', "begins with `http://` or `https://`"),
    ],
)
def test_host_that_would_never_match_is_refused_P7(tmp_path: Path, line: str, allowed: str) -> None:
    """A denied host that is written as an address would deny nothing."""
    with pytest.raises(ConfigInvalid, match="setting is wrong") as told:
        load_door(tmp_path, f"[network]\nweb = true\n{line}\n")
    assert allowed in str(told.value)


def test_every_way_to_write_a_host_is_accepted(tmp_path: Path) -> None:
    text = (
        '[network]\nallow_hosts = ["docs.example", "*.example.org", "b\u00fccher.example", "93.184.215.14"]\n'
        'deny_hosts = ["::1"]\n'
        'allow_private = ["searx.lan", "127.0.0.1:8080", "::1", "[::1]:99", "localhost"]\n'
        'search_url = "http://127.0.0.1:8080/search"\n'
    )
    assert len(load_door(tmp_path, text).settings.network.allow_private) == 5


@pytest.mark.parametrize("by_run", [False, True])
def test_projects_and_variables_can_close_the_web_and_deny_more_whatever_the_user_allows(
    tmp_path: Path, by_run: bool
) -> None:
    narrowed = load_door(tmp_path, DOOR, '[network]\nweb = false\ndeny_hosts = ["b.example"]\n')
    assert not narrowed.settings.network.web
    assert narrowed.settings.network.deny_hosts == ("a.example", "b.example")
    assert narrowed.settings.network.allow_private == ("127.0.0.1:1",)
    assert narrowed.ignored == ()
    closed = load_settings(
        directory=tmp_path,
        user=tmp_path / "user.toml",
        environment={"RETINUE_NETWORK__WEB": "false", "RETINUE_NETWORK__DENY_HOSTS": "c.example"},
        by_run=by_run,
    )
    assert not closed.settings.network.web
    assert closed.settings.network.deny_hosts == ("a.example", "c.example")
    assert closed.origins["network.web"] == "RETINUE_NETWORK__WEB"


def test_provider_of_the_users_own_needs_an_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"network\.providers\.mine\.url"):
        load_door(tmp_path, "[network.providers.mine]\nresults = 'hits'\n")
    loaded = load_door(tmp_path, "[network.providers.mine]\nurl = 'https://a.example/?q={query}'\n")
    assert loaded.settings.network.providers["mine"].query_field == "q"
