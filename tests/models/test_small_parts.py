"""Addresses, names and counts of tokens."""

from __future__ import annotations

import pytest

from retinue.core import ConfigInvalid
from retinue.models import EndpointAddress, display_name
from retinue.models.client import MAX_FACTOR, MIN_FACTOR, TokenEstimator
from retinue.models.server_info import same_model
from tests.models.served import ask


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1234",
        "http://localhost:1234/v1/",
        "http://[::1]:1234/v1",
        " http://LOCALHOST:1234/ ",
    ],
)
def test_all_ways_to_write_a_place_on_this_machine_share_its_slots(url: str) -> None:
    address = EndpointAddress.parse(url)
    assert (address.key, address.loopback) == ("127.0.0.1:1234", True)
    assert address.base.endswith(":1234/v1")


def test_a_server_behind_a_path_keeps_it() -> None:
    address = EndpointAddress.parse("https://models.example/llama/v1")
    assert (address.root, address.base) == ("https://models.example/llama", "https://models.example/llama/v1")
    assert address.encrypted and not address.loopback


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:1234", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://h:99999999/"),
        *(
            "http://[x/",
            "http://me:swordfish@h/",
            "http://h/v1?key=swordfish",
            "http://h/a\x00b",
            "http://a b/",
        ),
    ],
)
def test_what_is_no_plain_url_is_refused_and_not_repeated(url: str) -> None:
    """P6"""
    with pytest.raises(ConfigInvalid) as caught:
        EndpointAddress.parse(url)
    assert "swordfish" not in str(caught.value.as_dict())
    assert "http://127.0.0.1:1234/v1" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("qwen3-4b", "qwen/qwen3-4b"),
        ("qwen3", "qwen3:latest"),
        ("qwen3-4b", "qwen3-4b:2"),
        ("Tiny", "/models/tiny.gguf"),
        ("tiny.gguf", "C:\\models\\tiny.gguf"),
    ],
)
def test_names_of_one_model_are_the_same(one: str, other: str) -> None:
    assert same_model(one, other)


@pytest.mark.parametrize(("one", "other"), [("qwen3:4b", "qwen3:8b"), ("qwen3-4b", "qwen3-8b"), ("a", "")])
def test_names_of_two_models_are_not(one: str, other: str) -> None:
    assert not same_model(one, other)


def test_of_a_file_only_its_name_is_shown() -> None:
    """P6"""
    shown = [display_name(name) for name in ("/home/me/m.gguf", "C:\\Users\\me\\m.gguf", "qwen/qwen3\x1b[0m")]
    assert shown == ["m.gguf", "m.gguf", "qwen/qwen3[0m"]


def test_the_estimate_follows_what_the_server_counts() -> None:
    tokens, prompt = TokenEstimator(), ask("some words of a prompt " * 100)
    truth = round(tokens.estimate(prompt) * 1.4)
    for _ in range(8):
        tokens.learn(prompt, truth)
    assert tokens.estimate(prompt) == pytest.approx(truth, rel=0.01)


def test_no_count_of_a_server_pushes_the_estimate_out_of_bounds() -> None:
    prompt = ask("some words of a prompt " * 100)
    for wrong in (1, 10_000_000):
        tokens = TokenEstimator()
        for _ in range(50):
            tokens.learn(prompt, wrong)
        assert MIN_FACTOR <= tokens.factor <= MAX_FACTOR


def test_short_prompts_and_counts_of_nothing_teach_nothing() -> None:
    tokens = TokenEstimator()
    tokens.learn(ask("hello"), 300)
    tokens.learn(ask("some words of a prompt " * 100), 0)
    assert tokens.factor == 1.0
