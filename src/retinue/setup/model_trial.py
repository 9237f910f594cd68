"""Ten small tasks for the user's own model, on a small project with known answers.

The tasks have five kinds: where something is, how it works, a number or a name, whether something exists, and
one that needs two places. Checks judge the answers, no model does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from retinue.core import Outcome, Unverified

TrialVerdict = Literal["right", "not found", "unverified", "wrong", "failed"]

TRIAL_PROJECT: Mapping[str, str] = {
    "shop/cart.py": '''"""The shopping cart."""

from shop.prices import price_of

MAX_ITEMS = 40


class Cart:
    """Holds the items of one customer."""

    def __init__(self):
        self.items = {}

    def add(self, name, count=1):
        """Add an item. A full cart refuses it."""
        if len(self.items) >= MAX_ITEMS:
            raise CartFull(name)
        self.items[name] = self.items.get(name, 0) + count

    def total_cents(self):
        return sum(price_of(name) * count for name, count in self.items.items())


class CartFull(Exception):
    """Raised when another item does not fit."""
''',
    "shop/prices.py": '''"""Prices and discounts."""

DISCOUNT_PERCENT = 15
DISCOUNT_FROM_CENTS = 9000
_PRICES = {"lamp": 4900, "chair": 12900, "rug": 7900}


def price_of(name):
    """The price of one item in cents."""
    return _PRICES[name]


def apply_discount(total_cents):
    """Large orders cost less."""
    if total_cents < DISCOUNT_FROM_CENTS:
        return total_cents
    return total_cents * (100 - DISCOUNT_PERCENT) // 100
''',
    "shop/checkout.py": '''"""Turns a cart into an order."""

import time

from shop.prices import apply_discount

RETRIES = 4
PAUSE_SECONDS = 0.25


class PaymentRefused(Exception):
    """The bank said no."""


def place_order(cart, gateway):
    """Charge the customer, trying again if the gateway is busy."""
    amount = apply_discount(cart.total_cents())
    for attempt in range(RETRIES):
        if gateway.charge(amount):
            return {"amount": amount, "attempt": attempt}
        time.sleep(PAUSE_SECONDS)
    raise PaymentRefused(amount)
''',
    "web/session.js": """// Sessions of signed-in customers.
const LIFETIME_MINUTES = 35;

function newSession(user, clock) {
  return { user, expires: clock.now() + LIFETIME_MINUTES * 60000 };
}

function isExpired(session, clock) {
  return clock.now() > session.expires;
}

module.exports = { newSession, isExpired };
""",
    "web/server.js": """const { isExpired } = require('./session');

const PORT = 8127;

// Sends visitors without a session to the sign-in page.
function requireSession(request, response, clock) {
  if (!request.session || isExpired(request.session, clock)) {
    response.redirect('/sign-in');
    return false;
  }
  return true;
}

module.exports = { requireSession, PORT };
""",
    "README.md": "# Shop\n\nA small shop with a cart, a checkout and a web page.\n",
}


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A task and how to recognise the right answer."""

    kind: str
    text: str
    right: str
    """A regular expression that the right answer matches."""


TASKS = (
    TrialTask("where", "Where is it decided that a cart is full?", r"cart\.py"),
    TrialTask("where", "Where are visitors sent to the sign-in page?", r"server\.js|requireSession"),
    TrialTask("where", "Which function computes the discount of a large order?", r"apply_discount"),
    TrialTask("how", "What happens if the payment gateway is busy?", r"(?i)again|retr|attempt|sleep|pause"),
    TrialTask("how", "How is it checked that a session has expired?", r"isExpired|now|expires"),
    TrialTask("value", "How many items does a cart hold at most?", r"\b40\b"),
    TrialTask("value", "How many minutes does a session last?", r"\b35\b"),
    TrialTask("two steps", "What exception does placing an order raise in the end?", r"PaymentRefused"),
    TrialTask("is there", "Is there code that sends an e-mail?", r"(?i)not found|\bno\b|not "),
    TrialTask("is there", "Where are gift vouchers redeemed?", r"(?i)not found|\bno\b|not "),
)


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a model did one task."""

    task: TrialTask
    verdict: TrialVerdict
    answer: str
    seconds: float
    steps: int
    tokens: int

    def as_dict(self) -> dict[str, object]:
        return {
            "kind": self.task.kind,
            "task": self.task.text,
            "verdict": self.verdict,
            "answer": self.answer,
            "seconds": round(self.seconds, 1),
            "steps": self.steps,
            "tokens": self.tokens,
        }


async def run_trial(
    perform: Callable[[str], Awaitable[Outcome]],
    on_result: Callable[[TrialResult], None],
    tasks: Iterable[TrialTask] = TASKS,
) -> list[TrialResult]:
    """Perform the tasks one after the other and judge each answer."""
    results: list[TrialResult] = []
    for task in tasks:
        began = time.monotonic()
        outcome = await perform(task.text)
        steps, tokens = outcome.usage.get("steps", 0), outcome.usage.get("tokens", 0)
        results.append(
            TrialResult(
                task, judge(task, outcome), outcome.output, time.monotonic() - began, int(steps), int(tokens)
            )
        )
        on_result(results[-1])
    return results


def judge(task: TrialTask, outcome: Outcome) -> TrialVerdict:
    """Compare an answer with what is known to be right."""
    if isinstance(outcome.error, Unverified):
        return "unverified"
    if outcome.error is not None:
        return "failed"
    if outcome.output.startswith("Not found") and not re.search(task.right, "Not found"):
        return "not found"
    return "right" if re.search(task.right, outcome.output) else "wrong"
