"""Questions of runs, their answers, and how both change the status of the run.

Only records them; `retinue.runtime` delivers them.
"""

from __future__ import annotations

import json

from retinue.core import (
    Conflict,
    Message,
    MessageId,
    MessageStatus,
    PermissionWanted,
    RunId,
    RunStatus,
    RunUnknown,
    ToolRequest,
)
from retinue.store import queue
from retinue.store.database import Database, Row, Transaction, insert_into
from retinue.store.files import replace_surrogates


class MessageTable:
    """Records and reads messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(
        self,
        run_id: RunId,
        question: str,
        permission: PermissionWanted | None = None,
        message_id: MessageId | None = None,
    ) -> Message:
        """Record a question. The run becomes waiting, and its slot is free for other runs."""
        message_id = message_id or MessageId.new()
        with self._database.write() as tx:
            row = tx.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise RunUnknown(f"no such run: {run_id}", run_id=run_id)
            if row["status"] not in (RunStatus.RUNNING, RunStatus.WAITING):
                raise Conflict(f"run {run_id} is {row['status']} and cannot ask", run_id=run_id)
            question = replace_surrogates(question)
            values = {"id": message_id, "run_id": run_id, "question": question}
            values |= {"permission": None if permission is None else _permission_to_json(permission)}
            values |= {"asked_at": tx.now, "changed_at": tx.now}
            tx.execute(insert_into("messages", values), values)
            tx.execute(
                "UPDATE runs SET status = 'waiting_parent_reply', slot = 0, turn = NULL,"
                " waiting_since = coalesce(waiting_since, :now), changed_at = :now WHERE id = :id",
                {"id": run_id, "now": tx.now},
            )
            tx.touch(run_id)
            _tell_ancestors(tx, run_id)
        return self.get(message_id)

    def reply(self, message_id: MessageId, answer: str) -> Message:
        """Answer a question. After its last open question is answered, the run queues for a slot again.

        Raises `Conflict` if the question has been answered before.
        """
        with self._database.write() as tx:
            run_id = _change_status(
                tx, message_id, MessageStatus.REPLIED, "answer = :text, replied_at = :now", answer
            )
            still_open = tx.execute(
                "SELECT count(*) FROM messages WHERE run_id = ? AND status = 'pending_parent_reply'",
                (run_id,),
            ).fetchone()[0]
            if not still_open:
                _resume_after_reply(tx, run_id)
        return self.get(message_id)

    def acknowledge(self, message_id: MessageId) -> Message:
        """Record that the run has received the answer. Raises `Conflict` if it is not running again yet."""
        with self._database.write() as tx:
            run_id = _change_status(tx, message_id, MessageStatus.ACKNOWLEDGED, "acknowledged_at = :now")
            status = tx.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()[0]
            if status != RunStatus.RUNNING:
                raise Conflict(f"run {run_id} is {status} and waits for a slot", run_id=run_id)
        return self.get(message_id)

    def get(self, message_id: MessageId) -> Message:
        row = self._database.row("SELECT * FROM messages WHERE id = ?", (message_id,))
        if row is None:
            raise _unknown_message(message_id)
        return _message_from_row(row)

    def of_run(self, run_id: RunId) -> list[Message]:
        """The messages of a run, in the order they were asked."""
        rows = self._database.rows("SELECT * FROM messages WHERE run_id = ? ORDER BY seq", (run_id,))
        return [_message_from_row(row) for row in rows]

    def pending_in_tree(self, run_id: RunId) -> list[Message]:
        """The unanswered questions of a run and of its descendants, the oldest first."""
        rows = self._database.rows(
            "WITH RECURSIVE tree(id) AS (SELECT ? UNION"
            " SELECT runs.id FROM runs JOIN tree ON runs.parent = tree.id)"
            " SELECT messages.* FROM tree JOIN messages ON messages.run_id = tree.id"
            " WHERE messages.status = 'pending_parent_reply' ORDER BY messages.seq",
            (run_id,),
        )
        return [_message_from_row(row) for row in rows]

    def all_pending(self) -> list[Message]:
        """The unanswered questions of all runs, the oldest first."""
        rows = self._database.rows(
            "SELECT messages.* FROM runs JOIN messages ON messages.run_id = runs.id"
            " WHERE runs.ended_at IS NULL AND messages.status = 'pending_parent_reply' ORDER BY messages.seq"
        )
        return [_message_from_row(row) for row in rows]

    def pending(self, run_id: RunId) -> list[Message]:
        """The unanswered questions of one run."""
        rows = self._database.rows(
            "SELECT * FROM messages WHERE run_id = ? AND status = 'pending_parent_reply' ORDER BY seq",
            (run_id,),
        )
        return [_message_from_row(row) for row in rows]


def _tell_ancestors(tx: Transaction, run_id: RunId) -> None:
    """Record an event for each ancestor, so that callers waiting for one of them see the question."""
    above = tx.execute(
        "WITH RECURSIVE line(id, parent) AS (SELECT id, parent FROM runs WHERE id = ? UNION"
        " SELECT runs.id, runs.parent FROM runs JOIN line ON runs.id = line.parent)"
        " SELECT parent FROM line WHERE parent IS NOT NULL",
        (run_id,),
    ).fetchall()
    for row in above:
        values = {"run_id": row["parent"], "at": tx.now, "kind": "child_asks"}
        values |= {"data": json.dumps({"run": run_id})}
        tx.execute(insert_into("events", values), values)
        tx.touch(RunId(row["parent"]))


_REQUIRED_STATUS = {
    MessageStatus.REPLIED: MessageStatus.PENDING,
    MessageStatus.ACKNOWLEDGED: MessageStatus.REPLIED,
}


def _change_status(
    tx: Transaction, message_id: MessageId, after: MessageStatus, changes: str, text: str | None = None
) -> RunId:
    """Move a message to the status `after`, if it is in the one before it, and return the run's id."""
    row = tx.execute("SELECT run_id, status FROM messages WHERE id = ?", (message_id,)).fetchone()
    if row is None:
        raise _unknown_message(message_id)
    if row["status"] != _REQUIRED_STATUS[after]:
        raise Conflict(
            f"message {message_id} is {row['status']} and cannot become {after}",
            message_id=message_id,
            status=row["status"],
        )
    tx.execute(
        f"UPDATE messages SET status = :after, {changes}, changed_at = :now WHERE id = :id",
        {
            "id": message_id,
            "after": after.value,
            "now": tx.now,
            "text": None if text is None else replace_surrogates(text),
        },
    )
    run_id = RunId(row["run_id"])
    tx.touch(run_id)
    return run_id


def _resume_after_reply(tx: Transaction, run_id: RunId) -> None:
    """Queue the run ahead of runs that have not started: its process is alive and waits."""
    needs_slot, owner = tx.execute("SELECT needs_slot, owner FROM runs WHERE id = ?", (run_id,)).fetchone()
    if not owner:  # parked: the process that adopts it continues
        tx.execute(
            "UPDATE runs SET status = 'queued', waiting_since = NULL, changed_at = ? WHERE id = ?",
            (tx.now, run_id),
        )
    elif needs_slot:
        tx.execute(
            "UPDATE runs SET turn = ?, changed_at = ? WHERE id = ?", (queue.current_turn(tx), tx.now, run_id)
        )
    else:
        queue.resume_run(tx, run_id, slot=False)


def _unknown_message(message_id: MessageId) -> RunUnknown:
    return RunUnknown(f"no such message: {message_id}", message_id=message_id)


def _message_from_row(row: Row) -> Message:
    return Message(
        id=MessageId(row["id"]),
        run_id=RunId(row["run_id"]),
        question=row["question"],
        status=MessageStatus(row["status"]),
        asked_at=row["asked_at"],
        answer=row["answer"],
        replied_at=row["replied_at"],
        acknowledged_at=row["acknowledged_at"],
        closed_at=row["closed_at"],
        permission=None if row["permission"] is None else _permission_from_json(row["permission"]),
    )


def _permission_to_json(permission: PermissionWanted) -> str:
    asked = permission.asked
    values = {"tool": asked.tool, "subject": asked.subject, "details": asked.details}
    values |= {"rule": permission.rule, "wait_s": permission.wait_s, "warning": permission.warning}
    return replace_surrogates(json.dumps(values, ensure_ascii=False))


def _permission_from_json(text: str) -> PermissionWanted:
    values = json.loads(text)
    asked = ToolRequest(values["tool"], values["subject"], values["details"])
    return PermissionWanted(asked, values["rule"], values["wait_s"], values.get("warning", ""))
