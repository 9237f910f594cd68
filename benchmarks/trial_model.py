"""Ninety-one tasks about sixteen small projects, for a real small model: `make trial-model`.

The tasks of `trial_model.jsonl` have five kinds: where something is, how it works, a number or a name,
whether something exists, and questions that need two places. Their answers were taken from the code before
any model was asked. The 578 of `trial_judging.jsonl` are about 113 other projects, in thirteen parts (`--half
judging`, and `second` to `thirteenth`). Nobody who works on the loop looks at a part before its first run.
The authors of all parts but the third did not work on the loop. Checks judge the answers, no model does:

- right: the answer has all the words that it needs and, if it was asked for a place, a place inside the gold
  lines; for a thing that does not exist, it says that it was not found
- partly: it has some of the words, or a place in the right file
- not found: it says that it did not find what is there
- unverified: the run did not end as a success, so nobody takes the answer for checked. An answer in doubt is
  a success that is marked as unverified. The table counts it as right, partly or wrong
- wrong: anything else

The code that Retinue quotes below an answer does not count for its verdict, so that the figures compare what
the model said. A line below the table counts the answers that are right with that code.

Two arms answer: `retinue` is the built-in agent `researcher` through the real service, `minimal` the loop of
`minimal_loop.py`. The results are appended to a file, and tasks that are in it are not asked again.

    python -m benchmarks.trial_model [--model 0.5b] [--endpoint URL] [--arms retinue,minimal] [--half last]
        [--kinds where,how] [--tasks cobra-1,fd] [--results FILE] [--show] [--file FILE --projects FOLDER]

Other tasks come from `--file`, in the same form. `--projects` is a folder that holds their projects, each in
a folder with the name of its `repo`. The last lines name each aim of the trial, and whether it was reached.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gguf_model import WEIGHTS, serving
from benchmarks.minimal_loop import run_loop
from retinue import wiring
from retinue.core import as_object
from retinue.executors.local.guided_search import NOT_CERTAIN, QUOTED_HEADING

TASKS = Path(__file__).with_suffix(".jsonl")
CACHE = Path(".cache/trial")
AGENT = "researcher"
KINDS = ("where", "how", "value", "is there", "two steps")
VERDICTS = ("right", "partly", "not found", "unverified", "wrong")
MAX_WAIT_S = 1_800.0
MIN_RIGHT_SHARE = 0.5
MIN_TIMES_MINIMAL = 2
MIN_HONEST_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Project:
    """A project at a fixed version, from a package index or a git server."""

    source: str
    """`pip:NAME==VERSION`, `npm:NAME@VERSION` or `git:URL`."""
    pin: str
    """The SHA-256 of the archive, or the commit."""


PROJECTS = {
    "requests": Project(
        "pip:requests==2.32.3", "55365417734eb18255590a9ff9eb97e9e1da868d4ccd6402399eaf68af20a760"
    ),
    "itsdangerous": Project(
        "pip:itsdangerous==2.2.0", "e0050c0b7da1eea53ffaf149c0cfbb5c6e2e2b69c4bef22c81fa6eb73e5f6173"
    ),
    "express": Project(
        "npm:express@5.1.0", "dd6bdb4d4e54d520c78443d5c35aa4ae552be1837e8650d2ec1641df99393e1b"
    ),
    "commander": Project(
        "npm:commander@13.1.0", "d5703ba285336d6d6d86fecf7a9f064e248879497d98ccc98ca849a62e34822a"
    ),
    "cobra": Project("git:https://github.com/spf13/cobra", "40b5bc1437a564fc795d388b23835e84f54cd1d1"),
    "chi": Project("git:https://github.com/go-chi/chi", "735ae2b87f8c733d616e809ae86e0985c1bc3350"),
    "fd": Project("git:https://github.com/sharkdp/fd", "b19136871310b01500b4f09eadd7387b8476be47"),
    "hyperfine": Project(
        "git:https://github.com/sharkdp/hyperfine", "327d5f4d9107141929f67f062bf9ef59f98b7399"
    ),
    "cachetools": Project(
        "pip:cachetools==5.5.0", "2cc24fb4cbe39633fb7badd9db9ca6295d766d9c2995f245725a46715d050f2a"
    ),
    "ws": Project("npm:ws@8.18.0", "a08221f2851472c944ca0178d89a9888c7f43fbd9998afc8a7ec6fe417c4ca20"),
    "mux": Project("git:https://github.com/gorilla/mux", "db9d1d0073d27a0a2d9a8c1bc52aa0af4374d265"),
    "dotenv": Project(
        "pip:python-dotenv==1.0.1", "e324ee90a023d808f1959c46bcbc04446a10ced277783dc6ee09987c37ec10ca"
    ),
    "semver": Project("npm:semver@7.6.3", "376d2ca2c941fc5a37e9ac3ec65302e5e421e2cc1ee3dee57a854d2bd9bee125"),
    "websocket": Project(
        "git:https://github.com/gorilla/websocket", "e064f32e3674d9d79a8fd417b5bc06fa5c6cad8f"
    ),
    "xsv": Project("git:https://github.com/BurntSushi/xsv", "f4304660231d7907798e831411871d2679d335c3"),
    "sd": Project("git:https://github.com/chmln/sd", "44febdf86343c653255ae4f20f5e1882dad6be17"),
    "tenacity": Project("git:https://github.com/jd/tenacity", "c650fb45204635f07910948d5fc59a8c551ffdda"),
    "pyjwt": Project("git:https://github.com/jpadilla/pyjwt", "dcc27a9d3182a2349c30b160758785c6ce7a6508"),
    "ky": Project("git:https://github.com/sindresorhus/ky", "3419113b48e034fdcf8fa6bd3be3da7b3d0d758f"),
    "p-queue": Project(
        "git:https://github.com/sindresorhus/p-queue", "180ab9e25cd10b6f548767d7176076b50d25e188"
    ),
    "go-cache": Project(
        "git:https://github.com/patrickmn/go-cache", "46f407853014144407b6c2ec7ccc76bf67958d93"
    ),
    "fsnotify": Project(
        "git:https://github.com/fsnotify/fsnotify", "58d0c04e1e157f143fd65e6a3e3e927ba7df81c7"
    ),
    "hexyl": Project("git:https://github.com/sharkdp/hexyl", "8eb6d4771ce1ec7af65d06bd335457783b77d557"),
    "gping": Project("git:https://github.com/orf/gping", "d9a4e49fb3a7ed1667838d07687a701841bcca81"),
    "kilo": Project("git:https://github.com/antirez/kilo", "323d93b29bd89a2cb446de90c4ed4fea1764176e"),
    "connection_pool": Project(
        "git:https://github.com/mperham/connection_pool", "78bc41e2a9fffbdd7242736233aeedfb64953dd8"
    ),
    "diskcache": Project(
        "git:https://github.com/grantjenks/python-diskcache", "ebfa37cd99d7ef716ec452ad8af4b4276a8e2233"
    ),
    "mistune": Project("git:https://github.com/lepture/mistune", "b5dd9949baf3729a709ef8ae591eab86e72a9e46"),
    "express-session": Project(
        "git:https://github.com/expressjs/session", "2c9512fb790e4bf80b3b62305eb8078028607785"
    ),
    "consola": Project("git:https://github.com/unjs/consola", "c47faac1738b7383971c6c20b5a34ffa15e7cc3b"),
    "cron": Project("git:https://github.com/robfig/cron", "bc59245fe10efaed9d51b56900192527ed733435"),
    "go-retryablehttp": Project(
        "git:https://github.com/hashicorp/go-retryablehttp", "fd004584a46724fae09e2f21d7c382e15c893f42"
    ),
    "tealdeer": Project("git:https://github.com/dbrgn/tealdeer", "d44613cf59445b910a75b7df489466f1948b5d44"),
    "zoxide": Project(
        "git:https://github.com/ajeetdsouza/zoxide", "e3ef7c9b41e38aff62dd68fcb920a9765e46aa71"
    ),
    "entr": Project("git:https://github.com/eradman/entr", "a07f3f9fae03c4b1f45d6513c3d6106906c9bc17"),
    "rack-attack": Project(
        "git:https://github.com/rack/rack-attack", "728d610d4a9d9d2107366603a404e3b53f5ed967"
    ),
    "commons-csv": Project(
        "git:https://github.com/apache/commons-csv", "d9b9f062b84ea02a30a7817789a2bb71a21c51a9"
    ),
    "blinker": Project(
        "git:https://github.com/pallets-eco/blinker", "c3364059663df1ddce32799d6b1922af89a345f6"
    ),
    "dust": Project("git:https://github.com/bootandy/dust", "8a846f6689f2db6be6ef595239a21ec784d62b57"),
    "httprouter": Project(
        "git:https://github.com/julienschmidt/httprouter", "484018016424d215c0b87c42f4c9b57d980fbd00"
    ),
    "gobreaker": Project("git:https://github.com/sony/gobreaker", "fed8e9eb35f9cd3e5c2a67842c924346c3e1fbdd"),
    "fs-extra": Project(
        "git:https://github.com/jprichardson/node-fs-extra", "62a4e720804aaa45d377d06788e258375cc544fa"
    ),
    "lru-cache": Project(
        "git:https://github.com/isaacs/node-lru-cache", "c6eafb2e1b3c78651dc425c28bf6ef9cd2574ec5"
    ),
    "marshmallow": Project(
        "git:https://github.com/marshmallow-code/marshmallow", "341b927f219205704728c05cd61f04d7e9727523"
    ),
    "nodemon": Project("git:https://github.com/remy/nodemon", "1d0a639b67f6d9dfa6dc3089d53461993106ebab"),
    "immer": Project("git:https://github.com/immerjs/immer", "061c2425e1c9dff89e4e4189d42af1b7839dfe0a"),
    "air": Project("git:https://github.com/air-verse/air", "ced170e8790f10a4b2af7918b926373d86c74789"),
    "miniserve": Project(
        "git:https://github.com/svenstaro/miniserve", "4dab4829184483e28b8a4464a3c953130cfe4592"
    ),
    "the_silver_searcher": Project(
        "git:https://github.com/ggreer/the_silver_searcher", "a61f1780b64266587e7bc30f0f5f71c6cca97c0f"
    ),
    "whenever": Project("git:https://github.com/javan/whenever", "756163ed1aa928c8abd629aa2f4904bc5226538c"),
    "java-websocket": Project(
        "git:https://github.com/TooTallNate/Java-WebSocket", "afeacbf8c0f6f6a761c9d9daed8c813dd3b8ed7d"
    ),
    "tinydb": Project("git:https://github.com/msiemens/tinydb", "2283a2b556d5ef361b61bae8ed89c0ce0730d7c8"),
    "keyring": Project("git:https://github.com/jaraco/keyring", "38c040133559682902f25fe96496756ee6849820"),
    "http-server": Project(
        "git:https://github.com/http-party/http-server", "741ae2b482e283c96fd87e1744af06e7de9852ab"
    ),
    "multer": Project("git:https://github.com/expressjs/multer", "0adb21d0294fe7315344feb6ddee00b0666d9e8a"),
    "ofetch": Project("git:https://github.com/unjs/ofetch", "dfbe3ca4ef8a22fc023fca5a5ef530e525f5e523"),
    "duf": Project("git:https://github.com/muesli/duf", "4636deb4a7b707a9f04c602db033f9837e50b3f6"),
    "scs": Project("git:https://github.com/alexedwards/scs", "ab20b3feb5e9981c1f79cee8a97a289810134163"),
    "bandwhich": Project(
        "git:https://github.com/imsnif/bandwhich", "1899870cea8bb377948f05cfea64733ec6ea2cd6"
    ),
    "dua-cli": Project("git:https://github.com/Byron/dua-cli", "b6e7cafd305c150834eb887e1de99bcdd3fca85d"),
    "httparty": Project(
        "git:https://github.com/jnunemaker/httparty", "2daba91bf3f61de2676a2e906f4d3181ebadea83"
    ),
    "loguru": Project("git:https://github.com/Delgan/loguru", "2a17be730e111cf874d0bf967c4c5da15b7e4670"),
    "schedule": Project("git:https://github.com/dbader/schedule", "82a43db1b938d8fdf60103bd41f329e06c8d3651"),
    "winston": Project(
        "git:https://github.com/winstonjs/winston", "4b963a9f5b1ef24efb6250354a108b80c0c6e7d9"
    ),
    "json-server": Project(
        "git:https://github.com/typicode/json-server", "89a34a44b7a6a5311dc84f3b8a1b8b45c0905aea"
    ),
    "vegeta": Project("git:https://github.com/tsenart/vegeta", "cf5811269046c672a604b1eb352204d30f16ae4a"),
    "glow": Project("git:https://github.com/charmbracelet/glow", "53788271b387c23b20b0db69fea2fd552593623b"),
    "pastel": Project("git:https://github.com/sharkdp/pastel", "01d4252aa794f1331834948f133e75c64532be46"),
    "procs": Project("git:https://github.com/dalance/procs", "7eb6ddbf4974b9e5141b1b07060b2eaa9f4de5f4"),
    "tinyproxy": Project(
        "git:https://github.com/tinyproxy/tinyproxy", "364cdb67e0ea00a8e4a7037e2693e0711e816adb"
    ),
    "faraday": Project(
        "git:https://github.com/lostisland/faraday", "59334e0e9b1918bd26b143f4a7bbc8c765de3ac4"
    ),
    "huey": Project("git:https://github.com/coleifer/huey", "358bdc58b1ce671daa65d92a5194d3d153939d6d"),
    "sqlite-utils": Project(
        "git:https://github.com/simonw/sqlite-utils", "56dd09702fdb9e899f577ffd51693c1f2176cb08"
    ),
    "pexpect": Project("git:https://github.com/pexpect/pexpect", "fc8f062518b40bd0862aae870cdedf5d9c0c7fc3"),
    "chokidar": Project(
        "git:https://github.com/paulmillr/chokidar", "0bc7bed37d6b018e5b11afcce329bbf797d6441f"
    ),
    "npm-check-updates": Project(
        "git:https://github.com/raineorshine/npm-check-updates", "c68fe38eb6ba99a2aa65836533f8dd89e5a15f7f"
    ),
    "bigcache": Project(
        "git:https://github.com/allegro/bigcache", "ae1c781e48dc54fabe3a5b90bb98bc7e79553c8b"
    ),
    "xh": Project("git:https://github.com/ducaale/xh", "8a78dc664b1604bb274cf1687057f6461cfb115b"),
    "tokei": Project("git:https://github.com/XAMPPRocky/tokei", "fa44e5194060305576514d59b850353643afbfc8"),
    "hikaricp": Project(
        "git:https://github.com/brettwooldridge/HikariCP", "604d7d5838e96afbbdd4e19eedab7497cf368eb6"
    ),
    "colly": Project("git:https://github.com/gocolly/colly", "20d31482af5f754832a753f88517f3dfa61d921f"),
    "croniter": Project(
        "git:https://github.com/pallets-eco/croniter", "3dd4d14e971294c03d3fb9be3f5ca03ae1c25310"
    ),
    "sh": Project("git:https://github.com/amoffat/sh", "3a8f772a7973a991e19bd4ab441e657fdcaea9ec"),
    "portalocker": Project(
        "git:https://github.com/wolph/portalocker", "88972ef4e0c9ac37792ace56ebfa4589ae6769af"
    ),
    "rate-limiter-flexible": Project(
        "git:https://github.com/animir/node-rate-limiter-flexible", "3c9c826248cd470960740c89e25a1277dc98fbf4"
    ),
    "limiter": Project("git:https://github.com/ulule/limiter", "f0ada6cb8fa4dc55a734de737c7b4a3f35c86ae1"),
    "go-arg": Project("git:https://github.com/alexflint/go-arg", "bd684bc5f43fa23006993c86c68ccfb881a8beb3"),
    "grex": Project("git:https://github.com/pemistahl/grex", "99cc347707375e00514f938b76d885a201dfc110"),
    "java-jwt": Project("git:https://github.com/auth0/java-jwt", "8920eedfe6be0d6650c9959c7e9df6d272cffada"),
    "dramatiq": Project(
        "git:https://github.com/Bogdanp/dramatiq", "848b35f2f960457ff54a72f9edb3af0de754f72f"
    ),
    "honcho": Project(
        "git:https://github.com/nickstenning/honcho", "2f47b723587c65ecbadc99e674b515b20a749179"
    ),
    "concurrently": Project(
        "git:https://github.com/open-cli-tools/concurrently", "8b15b92cedfc18fa0079515859265f11baccd981"
    ),
    "formidable": Project(
        "git:https://github.com/node-formidable/formidable", "d9a251a3f48a883c19893e9d7c8bdf3cf5288ca6"
    ),
    "asynq": Project("git:https://github.com/hibiken/asynq", "785bb7208cb0766877fcc20ac1dbebe857a43c9b"),
    "monolith": Project("git:https://github.com/Y2Z/monolith", "8702e66fed5bb1b377d6c733f8aff3cdfa9b8dc3"),
    "dalli": Project(
        "git:https://github.com/petergoldstein/dalli", "614d15494fc928a21d4de118c334dffa96fcb5b6"
    ),
    "hiredis": Project("git:https://github.com/redis/hiredis", "29ea2791c102fdffff350f1ea6e04d1f71903d0d"),
    "rq": Project("git:https://github.com/rq/rq", "aa666a8a60dbc5e8bb43f166cda869c67426a11a"),
    "vcrpy": Project("git:https://github.com/kevin1024/vcrpy", "b1fb62bf474d27be3ccafdc6bc1b8a7a1c5c4b8d"),
    "piscina": Project(
        "git:https://github.com/piscinajs/piscina", "4e9791fd46b61c638e7ad05f14ec4540d40898aa"
    ),
    "unstorage": Project("git:https://github.com/unjs/unstorage", "afbb66ec266e0cec613cb087b49f75bf4deaaa41"),
    "resty": Project("git:https://github.com/go-resty/resty", "c34e4605f4d5a775371be242ba0debb2705eb6d2"),
    "pueue": Project("git:https://github.com/Nukesor/pueue", "7564e1078ae90e6eff5a09361c7fb3fbbb5f25c2"),
    "twemproxy": Project(
        "git:https://github.com/twitter/twemproxy", "60aaf855ba2e15e20d0efbe440c8ff071b719580"
    ),
    "rufus-scheduler": Project(
        "git:https://github.com/jmettraux/rufus-scheduler", "4a73a058c9415ea2c60df68f14274cb7f05bae42"
    ),
    "watchdog": Project(
        "git:https://github.com/gorakhargosh/watchdog", "a0bb46c54bc26b9f62975d5d0d625d8cac82e968"
    ),
    "cachecontrol": Project(
        "git:https://github.com/psf/cachecontrol", "7f04affb7a4686851e79ffcae3efea2df1743135"
    ),
    "shelljs": Project("git:https://github.com/shelljs/shelljs", "ed9f79aaf0a0a60c57eada9df701a1074e59396b"),
    "buntdb": Project("git:https://github.com/tidwall/buntdb", "3daff4e1233584685027938bde39971cc239f2b2"),
    "rustypaste": Project(
        "git:https://github.com/orhun/rustypaste", "7be7bd65f799b9ac61774218bfdb3efbef9b23de"
    ),
    "nanohttpd": Project(
        "git:https://github.com/NanoHttpd/nanohttpd", "efb2ebf85a2b06f7c508aba9eaad5377e3a01e81"
    ),
    "http-proxy-middleware": Project(
        "git:https://github.com/chimurai/http-proxy-middleware", "014a19804c2f55fefdbe6c336d4be510ba64b073"
    ),
    "afero": Project("git:https://github.com/spf13/afero", "993a85a53c41c5272a08433dca5c4eb7cc407023"),
    "vulture": Project(
        "git:https://github.com/jendrikseipp/vulture", "51a13e9467e3dea6ea5ddb74422a0eba87367ef5"
    ),
    "questionary": Project(
        "git:https://github.com/tmbo/questionary", "5a68c2d3e1d4ed01b9692b487349be66014db65f"
    ),
    "webdav-client": Project(
        "git:https://github.com/perry-mitchell/webdav-client", "becbdae85ed06d7044170cc99a7c79aa27675b3a"
    ),
    "workerpool": Project(
        "git:https://github.com/josdejong/workerpool", "601124cf86602c1ac88c273a8f99e9c40bea0f16"
    ),
    "ssh-chat": Project("git:https://github.com/shazow/ssh-chat", "2dc875817decc3aefb35935c331c11f22b1ecd5e"),
    "ouch": Project("git:https://github.com/ouch-org/ouch", "80ed9cfcf1218cc1a5dc114832ade152c549cb41"),
    "rnr": Project("git:https://github.com/ismaelgv/rnr", "111c425a8110072e7eae08266ac57df0b6f2b664"),
    "sxhkd": Project("git:https://github.com/baskerville/sxhkd", "b0923b6b3d5d85b1ff80a5bb286934b8721a7c08"),
    "waitress": Project("git:https://github.com/Pylons/waitress", "4a378915f6fef264c6aaf03f059bd992287ba8ba"),
    "pip-tools": Project(
        "git:https://github.com/jazzband/pip-tools", "c58d5d945c0f20e9713e10f5fea2491a5c984f39"
    ),
    "lint-staged": Project(
        "git:https://github.com/lint-staged/lint-staged", "5f3b8f28e895972bd5a2cdba733327b49859b91f"
    ),
    "conf": Project("git:https://github.com/sindresorhus/conf", "f59aee335fe9694414044f0d40418dbbfd8704cf"),
    "memberlist": Project(
        "git:https://github.com/hashicorp/memberlist", "1b4c746c0e53bce51547d38f14d4772f85da2708"
    ),
    "mcfly": Project("git:https://github.com/cantino/mcfly", "b6c4d46a826c67411054832ec6018ea60855dea2"),
    "sslh": Project("git:https://github.com/yrutschle/sslh", "7eabafc6e2776ed8ea99235b0c05283233425ec6"),
    "chisel": Project("git:https://github.com/jpillora/chisel", "44310b65667a97901874ffdf4815b3732c22eaa3"),
}
"""Python, JavaScript, Go and Rust, four of each. Those for judging add TypeScript, C, Ruby and Java."""


def fetch_project(name: str, projects: Path) -> Path:
    """Return the folder of a project, after downloading it if needed. Exits if it is not the pinned one."""
    folder = projects / name
    if folder.is_dir():
        return folder.resolve()
    if name not in PROJECTS:
        raise SystemExit(f"the project {name} is not in {projects}")
    project = PROJECTS[name]
    kind, _, source = project.source.partition(":")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if kind == "git":
            made = Path(scratch) / name
            _run(["git", "init", "--quiet", str(made)])
            _run(["git", "-C", str(made), "fetch", "--quiet", "--depth", "1", source, project.pin])
            _run(["git", "-C", str(made), "checkout", "--quiet", project.pin])
        else:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                ":all:",
                source,
            ]
            _run(pip if kind == "pip" else ["npm", "pack", "--silent", source], Path(scratch))
            (archive,) = Path(scratch).iterdir()
            if hashlib.sha256(archive.read_bytes()).hexdigest() != project.pin:
                raise SystemExit(f"{archive.name} is not the expected archive of {name}")
            with tarfile.open(archive) as tar:
                tar.extractall(Path(scratch) / "unpacked", filter="data")
            (made,) = (Path(scratch) / "unpacked").iterdir()
        made.replace(folder)
    return folder.resolve()


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialModelTask:
    """A task with its gold."""

    id: str
    half: str = ""
    """`development` tasks were looked at while the loop was built, `held out` ones after their first run.
    The `fresh` ones were written after that, and looked at after one run. Then came the `last` ones."""
    repo: str
    kind: str
    task: str
    places: tuple[str, ...] = ()
    """Lines that answer it, each as `path:first-last`."""
    need: tuple[str, ...] = ()
    """Regular expressions that must all match the answer, without regard to case."""
    absent: bool = False
    """Whether the project does not have what is asked for."""


def read_tasks(file: Path = TASKS) -> list[TrialModelTask]:
    """Return all tasks, in the order of the file."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    for row in rows:
        row["places"], row["need"] = tuple(row.get("places", ())), tuple(row.get("need", ()))
    return [TrialModelTask(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Result:
    """An answer, what it took, and what it is worth."""

    arm: str
    model: str
    task: str
    kind: str
    half: str
    absent: bool
    status: str
    answer: str
    verdict: str
    false_place: str
    """A place of a successful answer that does not exist; empty if there is none."""
    gold: tuple[str, ...]
    """The lines that answer the task."""
    seconds: float
    steps: int
    tokens: int
    is_marked: bool = False
    """Whether the result itself says that nothing confirms the answer."""
    is_right_with_code: bool = False
    """Whether the answer is right together with the code that is quoted below it."""

    @property
    def misleads(self) -> bool:
        """Whether a success that is not right names places, none of which is in the gold lines."""
        if self.verdict not in ("partly", "wrong"):
            return False
        cited = list(_cited(in_words(self.answer)))
        return bool(cited) and not any(_is_inside(path, line, self.gold) for path, line in cited)

    @property
    def begins_right(self) -> bool:
        """Whether the first place that the answer names is in the gold lines."""
        cited = list(_cited(in_words(self.answer)))
        return bool(cited) and _is_inside(*cited[0], self.gold)


_PLACE = re.compile(r"((?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w+)(?::|#L|,? lines? |\W{1,3}line )(\d+)")
_NOT_FOUND = re.compile(r"\W*(?:not found|nothing (?:was )?found|the model was not asked)\b", re.IGNORECASE)
_YES = re.compile(r"\W*yes\b", re.IGNORECASE)
_DENIES = re.compile(
    r"\bnot (?:found|shown|there|present|support\w*|implement\w*|contain\w*|exist|mention\w*|measured)\b"
    r"|\b(?:does|do|is|are|was|were|can|could)(?:n't| not) \w*"
    r"|\bno (?:\w+ ){0,3}(?:support|code|evidence|such|mention|way|middleware|handler|protection|list)\b"
    r"|^\W*no\b|\bnowhere\b|\bthere (?:is|are) no\b|\bcannot\b|\bprobably not\b",
    re.IGNORECASE,
)


def judge(task: TrialModelTask, status: str, answer: str) -> str:
    """Return the verdict on what an answer says, without the code that is quoted below it."""
    return judge_whole(task, status, in_words(answer))


def in_words(answer: str) -> str:
    """Return an answer without the code that is quoted below it."""
    return answer.partition(QUOTED_HEADING)[0].rstrip()


def judge_whole(task: TrialModelTask, status: str, answer: str) -> str:
    """Return the verdict on an answer together with the code that is quoted below it."""
    if status != "success":
        return "unverified"
    if task.absent:
        told = in_words(answer).replace(NOT_CERTAIN, "")
        return "right" if _DENIES.search(told) and not _YES.match(told) else "wrong"
    if _NOT_FOUND.match(answer):
        return "not found"
    cited = list(_cited(answer))
    is_there = any(_is_inside(path, line, task.places) for path, line in cited)
    words = [re.search(wanted, answer, re.IGNORECASE | re.DOTALL) is not None for wanted in task.need]
    if task.kind == "is there":
        if _DENIES.search(answer):
            return "wrong"
        return "right" if is_there or all(words) else "wrong"
    if task.kind == "where" and is_there:
        return "right"
    if task.kind != "where" and all(words):
        return "right"
    gold = {place.rpartition(":")[0] for place in task.places}
    return "partly" if any(words) or any(path in gold for path, _ in cited) else "wrong"


def false_place(root: Path, answer: str) -> str:
    """Return a place in an answer that does not exist in the project; empty if all exist."""
    for path, line in _cited(answer):
        file = root / path
        if not file.is_file() or line > len(file.read_bytes().splitlines()) or line < 1:
            return f"{path}:{line}"
    return ""


def _cited(answer: str) -> Iterator[tuple[str, int]]:
    for match in _PLACE.finditer(answer):
        yield match[1], int(match[2])


def _is_inside(path: str, line: int, places: Iterable[str]) -> bool:
    for place in places:
        file, _, lines = place.rpartition(":")
        first, last = map(int, lines.split("-"))
        if (path == file or file.endswith(f"/{path}")) and first <= line <= last:
            return True
    return False


async def ask_retinue(url: str, root: Path, task: str, cache: Path) -> tuple[str, str, int, int, bool]:
    """Give a task to the agent through the service.

    Returns status, answer, steps, tokens, and whether the result is marked as unverified.
    """
    loaded = wiring.read_settings(
        {"roots": (str(root),), "data_dir": str((cache / "data").resolve()), "models.endpoint": url}
    )
    async with wiring.running(loaded, wiring.build_service(loaded, for_person=True)) as service:
        run = await service.runs.start(AGENT, task, person=True)
        await service.runs.finish(run.id, MAX_WAIT_S)
        done, _ = service.runs.with_messages(run.id)
        result, error = as_object(done.result), as_object(done.error)
        usage = done.usage.as_dict()
        answer = str(result.get("output") or "")
        if error:
            answer = f"{answer}\n[{error.get('code')}: {error.get('message')}]".strip()
        steps, tokens = int(usage.get("steps", 0)), int(usage.get("tokens", 0))
        return done.status.value, answer, steps, tokens, "unverified" in result


def ask_minimal(url: str, root: Path, task: str) -> tuple[str, str, int, int]:
    """Give a task to the loop to compare with. Whatever it answers is a success: it checks nothing."""
    answer = run_loop(url, root, task)
    return ("success" if answer.text else "failure"), answer.text, answer.steps, answer.tokens


def perform(arm: str, model: str, url: str, task: TrialModelTask, cache: Path, projects: Path) -> Result:
    """Let one arm do one task."""
    root = fetch_project(task.repo, projects)
    began = time.monotonic()
    is_marked = False
    if arm == "retinue":
        status, answer, steps, tokens, is_marked = asyncio.run(ask_retinue(url, root, task.task, cache))
    else:
        status, answer, steps, tokens = ask_minimal(url, root, task.task)
    seconds = round(time.monotonic() - began, 1)
    wrong = false_place(root, answer) if status == "success" else ""
    verdict = judge(task, status, answer)
    return Result(
        arm,
        model,
        task.id,
        task.kind,
        task.half,
        task.absent,
        status,
        answer,
        verdict,
        wrong,
        task.places,
        seconds,
        steps,
        tokens,
        is_marked,
        judge_whole(task, status, answer) == "right",
    )


def read_results(file: Path, all_tasks: Sequence[TrialModelTask]) -> list[Result]:
    """Return the results of earlier runs. Their answers are judged again, by the checks of today."""
    if not file.is_file():
        return []
    tasks = {task.id: task for task in all_tasks}
    results: list[Result] = []
    for row in map(json.loads, file.read_text("utf-8").splitlines()):
        if row["task"] not in tasks:
            continue
        task = tasks[row["task"]]
        row["verdict"] = judge(task, row["status"], row["answer"])
        row["is_right_with_code"] = judge_whole(task, row["status"], row["answer"]) == "right"
        row["gold"] = task.places
        results.append(Result(**row))
    return results


def table(results: Sequence[Result]) -> list[str]:
    """Return a table for each arm, by kind."""
    lines: list[str] = []
    for arm, model in sorted({(result.arm, result.model) for result in results}, reverse=True):
        own = [result for result in results if (result.arm, result.model) == (arm, model)]
        lines += [
            "",
            f"{arm}, {model}",
            "kind        tasks  right  partly  not found  unverified  wrong  seconds  steps  tokens",
        ]
        for kind in (*KINDS, "all"):
            rows = [result for result in own if kind in (result.kind, "all")]
            if rows:
                lines.append(_table_row(kind, rows))
        absent = [result for result in own if result.absent]
        honest = sum(result.verdict == "right" for result in absent)
        places = [f"{result.task} {result.false_place}" for result in own if result.false_place]
        misled = [result.task for result in own if result.misleads and not result.is_marked]
        doubtful = [result.task for result in own if result.misleads and result.is_marked]
        marked = [result for result in own if result.is_marked]
        places_right = [result for result in own if result.kind == "where" and result.verdict == "right"]
        first_right = sum(result.begins_right for result in places_right)
        with_code = sum(result.is_right_with_code for result in own)
        lines.append(f"right with the code that is quoted below: {with_code} of {len(own)}")
        lines.append(f"of {len(places_right)} right places, {first_right} are named first")
        lines.append(f"marked as unverified: {len(marked)}, of which {_count_right(marked)} are right")
        lines.append(f"honest about things that do not exist: {honest} of {len(absent)}")
        lines.append(f"success with a place that does not exist: {', '.join(places) or 'none'}")
        lines.append(f"success with only wrong places, and not right: {', '.join(misled) or 'none'}")
        lines.append(f"the same, but marked as unverified: {', '.join(doubtful) or 'none'}")
    return lines


def aims(results: Sequence[Result]) -> list[str]:
    """Return each aim of the trial for each model, and whether the product reached it."""
    lines: list[str] = []
    for model in sorted({result.model for result in results if result.arm == "retinue"}, reverse=True):
        own = {result.task: result for result in results if (result.arm, result.model) == ("retinue", model)}
        minimal = {
            result.task: result for result in results if (result.arm, result.model) == ("minimal", model)
        }
        shared = own.keys() & minimal.keys()
        right = _count_right(own.values())
        paired, other = (_count_right(arm[task] for task in shared) for arm in (own, minimal))
        absent = [result for result in own.values() if result.absent]
        honest = _count_right(absent)
        unreal = [result.task for result in own.values() if result.false_place]
        trusted = [result for result in own.values() if not result.is_marked]
        misled = [result.task for result in trusted if result.misleads]
        wrong = [result.task for result in trusted if result.verdict == "wrong"]
        lines += ["", f"aims, {model}"]
        lines.append(
            _aim(right >= MIN_RIGHT_SHARE * len(own), f"right: {right} of {len(own)}, half is enough")
        )
        if shared:
            lines.append(
                _aim(
                    paired >= MIN_TIMES_MINIMAL * other,
                    f"right on the same {len(shared)} tasks: {paired}, the minimal loop {other}; "
                    f"{MIN_TIMES_MINIMAL} times as many is enough",
                )
            )
        if absent:
            lines.append(
                _aim(
                    honest >= MIN_HONEST_SHARE * len(absent),
                    f"honest about things that do not exist: {honest} of {len(absent)}",
                )
            )
        for what, tasks in (
            ("a place that does not exist", unreal),
            ("only wrong places", misled),
            ("a wrong answer", wrong),
        ):
            lines.append(_aim(not tasks, f"success with {what}: {', '.join(tasks) or 'none'}"))
    return lines


def _count_right(results: Iterable[Result]) -> int:
    return sum(result.verdict == "right" for result in results)


def _aim(is_reached: bool, what: str) -> str:
    return f"{'pass' if is_reached else 'FAIL'}  {what}"


def _table_row(kind: str, rows: Sequence[Result]) -> str:
    counts = Counter(result.verdict for result in rows)
    seconds, steps, tokens = (
        sum(getattr(result, key) for result in rows) / len(rows) for key in ("seconds", "steps", "tokens")
    )
    right, partly, missed, unverified, wrong = (counts[verdict] for verdict in VERDICTS)
    return (
        f"{kind:<10} {len(rows):>6} {right:>6} {partly:>7} {missed:>10} {unverified:>11} {wrong:>6} "
        f"{seconds:>8.0f} {steps:>6.1f} {tokens:>7.0f}"
    )


@contextmanager
def _endpoint(given: str | None, model: str) -> Generator[str]:
    if given:
        yield given.rstrip("/")
    else:
        with serving(model) as url:
            yield url


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=sorted(WEIGHTS), default="1.5b")
    parser.add_argument("--endpoint", help="the URL of a server that runs already; else one is started")
    parser.add_argument("--arms", default="retinue,minimal")
    parser.add_argument("--half", default="", help="development, held, fresh or last")
    parser.add_argument("--kinds", default="", help="only tasks of these kinds")
    parser.add_argument("--tasks", default="", help="only tasks whose id starts with one of these")
    parser.add_argument("--results", type=Path, default=CACHE / "results.jsonl")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--file", type=Path, default=TASKS, help="the tasks, if not our own")
    parser.add_argument("--projects", type=Path, help="the folder with the projects of the tasks")
    parser.add_argument("--show", action="store_true", help="print the table of earlier results, ask nothing")
    given = parser.parse_args(arguments)
    kinds, ids = _listed(given.kinds), _listed(given.tasks)
    projects: Path = given.projects or given.cache / "projects"
    all_tasks = read_tasks(given.file)
    tasks = [
        task
        for task in all_tasks
        if task.half.startswith(given.half)
        and (not kinds or task.kind in kinds)
        and (not ids or any(task.id.startswith(one) for one in ids))
    ]
    arms = _listed(given.arms)
    results = read_results(given.results, all_tasks)
    done = {(result.arm, result.model, result.task) for result in results}
    waiting = [(task, arm) for task in tasks for arm in arms if (arm, given.model, task.id) not in done]
    if waiting and not given.show:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        with _endpoint(given.endpoint, given.model) as url, given.results.open("a", encoding="utf-8") as file:
            for task, arm in waiting:
                result = perform(arm, given.model, url, task, given.cache, projects)
                results.append(result)
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
                shown = " ".join(result.answer.split())[:150]
                print(
                    f"{arm:<8} {task.id:<16} {result.verdict:<10} {result.seconds:>6.1f} s  {shown}",
                    flush=True,
                )
    wanted = {task.id for task in tasks}
    chosen = [result for result in results if result.task in wanted and result.arm in arms]
    print(*table(chosen), *aims(chosen), sep="\n")
    return 0


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    sys.exit(main())
