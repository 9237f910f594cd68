"""How the coding CLIs differ, as data: their programs, their variables, where they keep their state.

Knows nothing of how they are started or what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CERTIFICATES = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name files: whoever is given one must see the file too."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", *CERTIFICATES)
TIERS = ("fast", "default", "medium", "strong")


@dataclass(frozen=True, slots=True, kw_only=True)
class CliTraits:
    name: str
    program: str
    inherit: tuple[str, ...]
    """Variables of the server's that it needs: whom to ask for answers, and with what key."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """What keeps it from updating itself and telling others."""
    home: Mapping[str, str]
    """Variables that move its state into a folder of the agent's own, with the place in that folder."""
    login: Mapping[str, str] = field(default_factory=dict[str, str])
    """The files of the user's login, below the home, with their places in that folder."""
    tiers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its models for our tiers; a tier without one is its own default."""
    project_settings: tuple[str, ...] = ()
    """What of a project it takes settings, programs or instructions from, where no option prevents it."""
    given_ours: bool = True
    """Whether every agent on it gets our MCP server. To start one costs a fast CLI a tenth of all it does, so
    there only an agent that needs it does."""
    asks_itself: bool = False
    """Whether it has a way of its own to ask a question, which needs no server."""
    asks: bool = True
    """Whether it asks before it does what no rule allows."""
    has_modes: bool = False
    """Whether it knows modes of permission, such as `plan`."""
    replays_late: bool = False
    """Whether it tells a session that it loads again after it has said that it is loaded."""
    tells_cost: bool = False
    """Whether it knows what it spends, so that a limit of money can be held."""

    def model(self, asked: str | None) -> str | None:
        """The model to ask it for; None for its own default."""
        return self.tiers.get(asked) if asked in TIERS else asked


CLAUDE = CliTraits(
    name="claude",
    program="claude",
    inherit=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", *PROXIES),
    env={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    home={"CLAUDE_CONFIG_DIR": "."},
    login={".claude/.credentials.json": ".credentials.json"},
    tiers={"fast": "haiku", "medium": "sonnet", "strong": "opus"},
    given_ours=False,
    asks_itself=True,
    has_modes=True,
    tells_cost=True,
)

CODEX = CliTraits(
    name="codex",
    program="codex",
    inherit=("OPENAI_API_KEY", "OPENAI_BASE_URL", *PROXIES),
    home={"CODEX_HOME": "."},
    login={".codex/auth.json": "auth.json"},
    given_ours=False,
    asks=False,
)

GEMINI = CliTraits(
    name="gemini",
    program="gemini",
    inherit=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_*", *PROXIES),
    env={"GEMINI_CLI_NO_RELAUNCH": "true"},
    home={"GEMINI_CLI_HOME": "."},
    login={
        ".gemini/oauth_creds.json": ".gemini/oauth_creds.json",
        ".gemini/google_accounts.json": ".gemini/google_accounts.json",
    },
    tiers={"fast": "gemini-2.5-flash", "strong": "gemini-2.5-pro"},
    project_settings=(".gemini", ".agents", "GEMINI.md"),
    replays_late=True,
)

OPENCODE = CliTraits(
    name="opencode",
    program="opencode",
    inherit=PROXIES,  # it has a login of its own, and its commands see all its variables
    env={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    },
    home={
        "XDG_DATA_HOME": "data",
        "XDG_CONFIG_HOME": "config",
        "XDG_STATE_HOME": "state",
        "XDG_CACHE_HOME": "cache",
    },
    login={".local/share/opencode/auth.json": "data/opencode/auth.json"},
)
