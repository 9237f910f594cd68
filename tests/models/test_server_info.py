"""Model names are compared and shown without paths."""

from __future__ import annotations

import pytest

from retinue.models import display_name
from retinue.models.server_info import same_model


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
def test_spellings_of_one_model_are_the_same(one: str, other: str) -> None:
    assert same_model(one, other)


@pytest.mark.parametrize(("one", "other"), [("qwen3:4b", "qwen3:8b"), ("qwen3-4b", "qwen3-8b"), ("a", "")])
def test_names_of_different_models_are_not_the_same(one: str, other: str) -> None:
    assert not same_model(one, other)


def test_model_file_is_shown_without_its_path() -> None:
    """P6"""
    shown = [display_name(name) for name in ("/home/me/m.gguf", "C:\\Users\\me\\m.gguf", "qwen/qwen3\x1b[0m")]
    assert shown == ["m.gguf", "m.gguf", "qwen/qwen3[0m"]
