"""The smoke run over package archives: what it refuses, what it prints, and its exit code."""

from __future__ import annotations

import hashlib
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.claims import Claim, Tally
from benchmarks.claims_verdict import Verdict
from benchmarks.smoke import ARCHIVES, Archive, conclude, run

CODE = """\
def send_letter(address):
    return stamp(address)


def stamp(address):
    return f"to {address}"
"""


def packed(cache: Path) -> Archive:
    """Put the archive of a small project into the cache."""
    folder = cache / "new" / "letters-1.0"
    folder.mkdir(parents=True)
    (folder / "letters.py").write_text(CODE, encoding="utf-8")
    file = cache / "letters-1.0.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(folder, "letters-1.0")
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return Archive("pip", "letters", "1.0", "Python", sha256, ("who calls stamp?",))


def test_each_report_is_printed_with_the_verdict_on_its_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([packed(tmp_path)], tmp_path) == 0
    printed = capsys.readouterr().out
    assert "letters 1.0 (Python): who calls stamp?" in printed
    assert "`send_letter` calls `stamp`: `return stamp(address)`" in printed
    assert " true, 0 false, 0 unverifiable" in printed


def test_false_claim_makes_the_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(Counter(), [], 1)
    claim = Claim("calls", "stamp calls send_letter", "letters.py", 1)
    tally.add(claim, Verdict("false", "there is no such call"), "letters")
    assert conclude(tally, 1) == 1
    assert "there is no such call" in capsys.readouterr().out


def test_archive_with_another_hash_is_neither_unpacked_nor_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = packed(tmp_path)
    (tmp_path / archive.file).write_bytes(b"something else")
    assert run([archive], tmp_path) == 2
    assert not (tmp_path / archive.folder).exists()
    assert "is not the expected file\nremove it and try again" in capsys.readouterr().err


def test_missing_package_manager_is_named_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    archive = next(one for one in ARCHIVES if one.index == "npm")
    assert run([archive], tmp_path / "cache") == 2
    assert "npm is not installed\nrun this where pip and npm can download" in capsys.readouterr().err


def test_download_that_fails_says_what_pip_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert run([Archive("pip", "letters", "1.0", "Python", "0" * 64, ())], tmp_path / "cache") == 2
    complaint = capsys.readouterr().err
    assert "letters 1.0: pip failed" in complaint
    assert "copy the archives into the cache folder" in complaint


def test_archives_are_pinned_and_cover_seven_languages() -> None:
    assert len({archive.language for archive in ARCHIVES}) == 7
    assert all(len(archive.sha256) == 64 for archive in ARCHIVES)
