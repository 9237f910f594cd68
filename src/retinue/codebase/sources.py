"""Which files hold something to be found by words. The rest is known by its path alone."""

from __future__ import annotations

MAX_SEARCHED_BYTES = 500_000
"""Bytes; a larger text file is data or generated."""

_DATA_SUFFIXES = """
.po .pot .mo .svg .csv .tsv .lock .map .min.js .min.css .ipynb .geojson .ndjson .jsonl .parquet .sqlite
.db .dat .png .jpg .jpeg .gif .ico .webp .bmp .tif .tiff .pdf .ps .eps .dvi .woff .woff2 .ttf .otf .eot
.afm .pfb .zip .gz .bz2 .xz .zst .tar .tgz .7z .jar .war .whl .egg .so .dll .dylib .exe .o .a .lib .class
.pyc .pyd .wasm .mp3 .mp4 .wav .ogg .webm .mov .avi .npy .npz .pkl .pickle .h5 .hdf5 .nc .fits .bin .snap
.sum
"""
_DATA = tuple(_DATA_SUFFIXES.split())


def worth_reading(path: str) -> bool:
    return not path.lower().endswith(_DATA)
