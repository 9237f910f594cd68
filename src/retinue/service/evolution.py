"""The evolver: lists friction, asks a strong model for one draft, measures drafts, and puts them into use.

A draft is tried by doing past tasks again, each in a worktree of its own, with the draft and without it.
Commands or a schema judge the work, never a model. Knows nothing of terminals.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retinue.core import (
    Agent,
    Conflict,
    InvalidInput,
    RunStatus,
    Unauthorized,
    Unavailable,
    as_object,
    as_text,
    clip,
)
from retinue.learning import (
    DraftKind,
    Drafts,
    DraftTrial,
    DraftVerdict,
    Friction,
    FrictionKey,
    Gates,
    InUse,
    StoredDraft,
    audit_time,
    count_effects,
    find_friction,
    is_known,
    read_proposal,
)
from retinue.service.past_runs import (
    ReplayableRun,
    ended_runs,
    judged_runs,
    read_past_runs,
    replayable_runs,
)
from retinue.service.proposer import NOTHING, STRONG, FrictionEvidence, ask_for_help
from retinue.service.runs import RunService
from retinue.service.trial_runs import TrialRuns

NO_STRONG_MODEL = (
    "no model is set for the tier `strong`, so nothing is proposed; "
    "set one: `retinue config set models.tiers.strong.model NAME`"
)
RECENT_TASKS = 200
DEFAULT_TASKS = 8
MAX_TASKS = 50
MAX_REPEATS = 10
WHO_GETS_IT = {
    DraftKind.SKILL: "; agents whose files have `skills` get no others",
    DraftKind.EDIT: "; agents whose files have `skills` get no others",
    DraftKind.MEMORY: "; agents get memories if their files say `memory: true`",
}
TRIED_KINDS = (DraftKind.SKILL, DraftKind.EDIT, DraftKind.AGENT, DraftKind.MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionService:
    """The verbs of the evolver."""

    runs: RunService
    drafts: Drafts
    in_use: InUse
    team_names: Callable[[], set[str]]
    has_strong_model: bool
    """Whether the user has named a model for the tier `strong`."""

    def friction(self) -> list[Friction]:
        """Return what slows runs in this project down, the costliest first.

        Leaves out what was rejected, and what has not happened since a draft against it was promoted.
        """
        promoted = self.drafts.promoted_friction()
        return [each for each in self._unrejected_friction() if not self._is_solved(each, promoted)]

    def _unrejected_friction(self) -> list[Friction]:
        rejected = self.drafts.rejected_friction()
        found = find_friction(read_past_runs(self.runs.store, self.in_use.project))
        return [each for each in found if not is_known(each, rejected)]

    def _is_solved(self, friction: Friction, promoted: Sequence[tuple[FrictionKey, str]]) -> bool:
        """Whether all runs of a friction began before a draft against it was promoted."""
        began = self.runs.store.runs.get(friction.runs[0]).timing.started_at or 0.0
        return any(audit_time(began) <= at and is_known(friction, [key]) for key, at in promoted)

    def overview(self) -> dict[str, Any]:
        """The friction, the drafts that wait for a decision, and what was promoted."""
        looked_at = ended_runs(self.runs.store, self.in_use.project)
        return self._redacted(
            {
                "runs_looked_at": len(looked_at),
                "friction": [friction_view(each) for each in self.friction()],
                "harmful_skills": [name for name, each in self.skill_effects().items() if each["harms"]],
                "drafts": [self._draft_row(draft) for draft in self.drafts.pending()],
            }
        )

    def skill_effects(self) -> dict[str, dict[str, Any]]:
        """How runs with each skill ended, and whether it harms, by name."""
        found = count_effects(judged_runs(self.runs.store, self.in_use.project))
        return {
            name: {"helped": each.helped, "harmed": each.harmed, "harms": each.harms}
            for name, each in found.items()
        }

    def list_drafts(self) -> dict[str, Any]:
        """Drafts with their state, and the history of all of them."""
        shown = ("at", "action", "draft", "kind", "forced", "reason")
        history = [
            {name: value for name in shown if (value := getattr(each, name)) or name == "at"}
            for each in self.drafts.audit.history()
        ]
        return self._redacted(
            {"drafts": [self._draft_row(draft) for draft in self.drafts.pending()], "history": history}
        )

    def show(self, name: str) -> dict[str, Any]:
        """A draft with its text, the friction that it is against, and the figures of its trial."""
        draft = self.drafts.get(name)
        created = self.drafts.audit.last("create", name)
        view = {
            **self._draft_row(draft),
            "text": draft.text,
            "files": list(draft.files),
            "runs": [] if created is None else list(created.runs),
            "can_be_tried": draft.kind in TRIED_KINDS,
        }
        if (figures := self._figures(draft)) is not None:
            view["trial"] = figures
        return self._redacted(view)

    def diff(self, name: str) -> str:
        return self.runs.redactor.redact(self.drafts.diff(name, self.in_use))

    async def propose(self) -> dict[str, Any]:
        """Ask the strong model for one draft against the friction. Without such a model, return why not."""
        friction = self._open_friction()
        if not friction:
            return {"note": "nothing is proposed: no friction is left without a draft"}
        if not self.has_strong_model:
            return {"note": NO_STRONG_MODEL}
        ended = await ask_for_help(self.runs, self._evidence(friction))
        given = as_object(as_object(ended.result).get("value"))
        if ended.status is not RunStatus.SUCCESS or not given:
            error = as_object(ended.error)
            reason = f"{as_text(error.get('code')) or ended.status}: {as_text(error.get('message'))}"
            note = f"the model gave no answer that can be used: {reason}"
            return self._redacted({"note": note, "run_id": ended.id})
        if given.get("kind") == NOTHING:
            why = clip(" ".join(as_text(given.get("description")).split()), 300)
            return {"note": f"the model proposes nothing: {why}", "run_id": ended.id}
        model = as_text(as_object(as_object(ended.result).get("receipt")).get("model")) or STRONG
        try:
            chosen = {each.id: each for each in friction}[as_text(given["friction"])]
            proposal = read_proposal(given, self._gates(chosen))
            draft = self.drafts.start_run(model).create(proposal, chosen)
        except (InvalidInput, Conflict) as refused:
            return {"note": refused.message, "run_id": ended.id}
        return {"draft": self.show(draft.name), "run_id": ended.id}

    async def try_draft(
        self,
        name: str,
        *,
        tasks: int = DEFAULT_TASKS,
        repeats: int = 1,
        max_tokens: int | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> dict[str, Any]:
        """Do past tasks again with the draft and without it, and record the figures."""
        if not 1 <= tasks <= MAX_TASKS or not 1 <= repeats <= MAX_REPEATS:
            raise InvalidInput(
                f"{tasks} tasks with {repeats} repeats cannot be tried",
                hint=f"1 to {MAX_TASKS} tasks, 1 to {MAX_REPEATS} repeats",
            )
        self._require_trust()
        draft = self.drafts.get(name)
        if draft.kind not in TRIED_KINDS:
            raise InvalidInput(
                f"a draft of the kind {draft.kind} cannot be tried by doing past tasks again",
                hint=f"look at it with `retinue evolve show {name}`, then `retinue evolve promote {name}`",
            )
        self._check_content(draft)
        chosen = self._replayable(draft)[:tasks]
        if not chosen:
            raise Unavailable(
                "no past run of an agent that would get this draft can be judged again",
                hint="give the agent `acceptance` commands or an `output_schema`, no `spawns`, and some tasks"
                + WHO_GETS_IT.get(draft.kind, ""),
            )
        trial = TrialRuns(self.runs, self.in_use, draft, repeats, max_tokens, tell)
        result = DraftTrial(tuple([done async for done in trial.run(chosen)]), tuple(trial.skipped))
        figures = self._redacted(result.as_json())
        self.drafts.audit.record("try", name, kind=draft.kind.value, **draft.record, figures=figures)
        return figures

    async def promote(self, name: str, *, force: bool = False) -> dict[str, Any]:
        """Put a draft into use. Without a trial that shows no harm, only with `force`, which is recorded."""
        figures = self._check_promotion(name, force)
        return await asyncio.to_thread(self.drafts.promote, name, self.in_use, forced=force, figures=figures)

    async def reject(self, name: str, reason: str = "") -> dict[str, Any]:
        """Delete a draft. Its friction does not come back."""
        await asyncio.to_thread(self.drafts.reject, name, self.runs.redactor.redact(reason))
        return {"rejected": name}

    async def rollback(self, name: str) -> dict[str, Any]:
        """Undo the promotion of a draft."""
        self._require_trust()
        return await asyncio.to_thread(self.drafts.rollback, name, self.in_use)

    def preview_promotion(self, name: str, *, force: bool = False) -> dict[str, Any]:
        """The figures of the trial and the diff, for a person to decide. Raises the errors of `promote`."""
        figures = self._check_promotion(name, force)
        return {"figures": figures, "diff": self.diff(name)}

    def _check_promotion(self, name: str, force: bool) -> dict[str, Any] | None:
        """Return the figures of the trial, if there are any. Raises if the draft may not be promoted."""
        self._require_trust()
        draft = self.drafts.get(name)
        figures = self._figures(draft)
        self._check_content(draft)
        if not force and (reason := self._reason_against(draft, figures)):
            first = f"try it: `retinue evolve try {name}`; or " if draft.kind in TRIED_KINDS else ""
            raise Conflict(reason, hint=f"{first}promote it with --force")
        return figures

    def _check_content(self, draft: StoredDraft) -> None:
        """Raise if a draft has no valid content, or a secret in it."""
        self.drafts.check(draft)
        if draft.kind is DraftKind.AGENT:
            found = self.runs.agents.catalog.read(self.in_use.project / draft.path)
            if found.agent is None:
                raise InvalidInput(f"{draft.path} is not a valid agent", hint="correct it, or reject it")
        redact = self.runs.redactor.redact
        texts = {draft.path: draft.text, **draft.files}
        if secret := next((path for path, text in texts.items() if redact(text) != text), None):
            raise Conflict(f"{secret} seems to contain a secret", hint="remove it, then try the draft again")

    def _figures(self, draft: StoredDraft) -> dict[str, Any] | None:
        """The figures of a trial of this very content."""
        tried = self.drafts.audit.last("try", draft.name)
        if tried is None or (tried.text, tried.files) != (draft.text, draft.files):
            return None
        return None if tried.figures is None else dict(tried.figures)

    def _open_friction(self) -> list[Friction]:
        """The friction that no draft is against."""
        created = [self.drafts.audit.last("create", draft.name) for draft in self.drafts.pending()]
        handled = [each.friction for each in created if each is not None and each.friction]
        return [each for each in self.friction() if not is_known(each, handled)]

    def _evidence(self, friction: Sequence[Friction]) -> FrictionEvidence:
        """Return the evidence for the model: the friction, and what exists already."""
        points = {name: self.in_use.skill_points(name) for name in sorted(self.in_use.skill_names())}
        return FrictionEvidence(
            friction=friction,
            granted={agent: sorted(rules) for agent, rules in self._granted().items()},
            agents=sorted(self.runs.agents.catalog.agents()),
            skills={name: each for name, each in points.items() if each is not None},
        )

    def _gates(self, friction: Friction) -> Gates:
        """Return the facts that a proposal against this friction is checked against."""
        redact = self.runs.redactor.redact
        agents = set(self.runs.agents.catalog.agents())
        past = ended_runs(self.runs.store, self.in_use.project)
        return Gates(
            taken_names={*self.in_use.skill_names(), *agents, *self.team_names(), *self.drafts.names()},
            agents=agents,
            recent_tasks=[run.spec.task for run in past[-RECENT_TASKS:] if run.id not in friction.runs],
            slowed_tasks=[run.spec.task for run in past if run.id in friction.runs],
            granted=self._granted(),
            skill_points=self.in_use.skill_points,
            hides_secret=lambda text: redact(text) != text,
        )

    def _granted(self) -> dict[str, set[str]]:
        """The exact rules for what people granted again and again, by agent."""
        rules: defaultdict[str, set[str]] = defaultdict(set)
        for each in self._unrejected_friction():
            if each.agent and each.rule is not None:
                rules[each.agent].add(each.rule)
        return dict(rules)

    def _replayable(self, draft: StoredDraft) -> list[ReplayableRun]:
        """The past runs to try the draft on: those of its friction's agent, the slowed ones first."""
        created = self.drafts.audit.last("create", draft.name)
        agent = "" if created is None or created.friction is None else created.friction.agent

        def is_meant(each: Agent) -> bool:
            return agent in ("", each.name) and _gets(each, draft)

        found = replayable_runs(self.runs.store, self.runs.agents, self.runs.cwd, is_meant)
        about = () if created is None else created.runs
        return sorted(found, key=lambda each: each.run.id not in about)

    def _require_trust(self) -> None:
        """Raise if the project is not trusted: drafts and their audit file may have come with a clone."""
        if not self.in_use.is_trusted:
            folder = shlex.quote(str(self.in_use.project))
            raise Unauthorized(
                "the drafts of a project that is not trusted can only be looked at and rejected",
                hint=f"read its agents and skills, then trust it with `retinue agents trust {folder}`",
            )

    def _reason_against(self, draft: StoredDraft, figures: Mapping[str, Any] | None) -> str | None:
        """Why a draft is not promoted without force; None if nothing speaks against it."""
        if draft.kind is DraftKind.RULE:
            agent, rule = as_text(draft.content.get("agent")), as_text(draft.content.get("rule"))
            if rule not in self._granted().get(agent, ()):
                return f"nobody has granted {clip(rule, 80)} to {clip(agent, 80)} several times"
        if draft.kind not in TRIED_KINDS:
            return None
        if figures is None:
            return f"{draft.name} was not tried as it is now"
        if figures["verdict"] in (DraftVerdict.HARMS, DraftVerdict.COSTS):
            return f"the trial of {draft.name} says that it {figures['verdict']}"
        if figures["verdict"] == DraftVerdict.UNSHOWN:
            return f"the trial of {draft.name} shows no gain"
        return None

    def _draft_row(self, draft: StoredDraft) -> dict[str, Any]:
        created = self.drafts.audit.last("create", draft.name)
        friction = None if created is None else created.friction
        figures = self._figures(draft)
        return {
            "name": draft.name,
            "kind": draft.kind.value,
            "file": draft.path,
            "created": None if created is None else created.at,
            "by": None if created is None else created.by,
            "friction": None if friction is None else friction._asdict(),
            "verdict": "not tried" if figures is None else figures["verdict"],
        }

    def _redacted(self, view: dict[str, Any]) -> dict[str, Any]:
        return self.runs.redactor.redact_value(view)


def _gets(agent: Agent, draft: StoredDraft) -> bool:
    """Whether runs of an agent would get a draft if it was promoted. Else its trial would mislead."""
    match draft.kind:
        case DraftKind.SKILL:
            return agent.skills is None
        case DraftKind.EDIT:
            return agent.skills is None or as_text(draft.content.get("skill")) in agent.skills
        case DraftKind.MEMORY:
            return agent.memory
        case _:
            return True


def friction_view(friction: Friction) -> dict[str, Any]:
    """Friction for people and programs."""
    view: dict[str, Any] = {
        "id": friction.id,
        "kind": friction.kind.value,
        "agent": friction.agent or None,
        "what": friction.what,
        "times": friction.times,
        "tokens_lost": friction.tokens_lost,
        "tokens_estimated": friction.tokens_estimated,
        "waited_s": friction.waited_s,
        "runs": list(friction.runs[:5]),
        "more_runs": max(0, len(friction.runs) - 5),
    }
    if len(friction.examples) > 1:
        view["examples"] = list(friction.examples)
    return view
