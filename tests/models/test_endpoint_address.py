"""URLs of model servers are parsed, normalised and checked."""

from __future__ import annotations

import pytest

from retinue.core import ConfigInvalid
from retinue.models import EndpointAddress


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1234",
        "http://localhost:1234/v1/",
        "http://[::1]:1234/v1",
        " http://LOCALHOST:1234/ ",
    ],
)
def test_all_spellings_of_a_local_address_share_its_slots(url: str) -> None:
    address = EndpointAddress.parse(url)
    assert (address.key, address.loopback) == ("127.0.0.1:1234", True)
    assert address.base.endswith(":1234/v1")


def test_path_before_v1_is_kept() -> None:
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
def test_invalid_url_is_refused_and_not_repeated(url: str) -> None:
    """P6"""
    with pytest.raises(ConfigInvalid) as caught:
        EndpointAddress.parse(url)
    assert "swordfish" not in str(caught.value.as_dict())
    assert "http://127.0.0.1:1234/v1" in str(caught.value.hint)
