"""Questions and answers, and what they do to the run that asks. Delivering them is the runtime's business."""

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
from retinue.store.database import Database, Row, Transaction
from retinue.store.files import storable


class MessageTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(
        self,
        run_id: RunId,
        question: str,
        permission: PermissionWanted | None = None,
        message_id: MessageId | None = None,
    ) -> Message:
        """Record a question. The run waits from now on, and its slot is free for others."""
        message_id = message_id or MessageId.new()
        with self._database.write() as tx:
            row = tx.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise RunUnknown(f"no such run: {run_id}", run_id=run_id)
            if row["status"] not in (RunStatus.RUNNING, RunStatus.WAITING):
                raise Conflict(f"run {run_id} is {row['status']} and cannot ask", run_id=run_id)
            question = storable(question)
            values = {"id": message_id, "run_id": run_id, "question": question}
            values |= {"permission": None if permission is None else _to_json(permission)}
            tx.insert("messages", values | {"asked_at": tx.now, "changed_at": tx.now})
            tx.execute(
                "UPDATE runs SET status = 'waiting_parent_reply', slot = 0, turn = NULL,"
                " waiting_since = coalesce(waiting_since, :now), changed_at = :now WHERE id = :id",
                {"id": run_id, "now": tx.now},
            )
            tx.touch(run_id)
        return self.get(message_id)

    def reply(self, message_id: MessageId, answer: str) -> Message:
        """Answer a question once. After its last open question the run queues for a slot again."""
        with self._database.write() as tx:
            run_id = _change(
                tx, message_id, MessageStatus.REPLIED, "answer = :text, replied_at = :now", answer
            )
            still_open = tx.execute(
                "SELECT count(*) FROM messages WHERE run_id = ? AND status = 'pending_parent_reply'",
                (run_id,),
            ).fetchone()[0]
            if not still_open:
                _go_on(tx, run_id)
        return self.get(message_id)

    def acknowledge(self, message_id: MessageId) -> Message:
        """The run takes its answer, which it can only do once it is running again."""
        with self._database.write() as tx:
            run_id = _change(tx, message_id, MessageStatus.ACKNOWLEDGED, "acknowledged_at = :now")
            status = tx.execute("SELECT status FROM runs WHERE id = ?", (run_id,)).fetchone()[0]
            if status != RunStatus.RUNNING:
                raise Conflict(f"run {run_id} is {status} and waits for a slot", run_id=run_id)
        return self.get(message_id)

    def get(self, message_id: MessageId) -> Message:
        row = self._database.row("SELECT * FROM messages WHERE id = ?", (message_id,))
        if row is None:
            raise _unknown(message_id)
        return _message(row)

    def of_run(self, run_id: RunId) -> list[Message]:
        """In the order they were asked."""
        rows = self._database.rows("SELECT * FROM messages WHERE run_id = ? ORDER BY seq", (run_id,))
        return [_message(row) for row in rows]

    def pending_in_tree(self, request: RunId) -> list[Message]:
        """The questions that nobody has answered yet, of a request's first run and of all below it."""
        rows = self._database.rows(
            "SELECT messages.* FROM messages JOIN runs ON runs.id = messages.run_id"
            " WHERE runs.request = ? AND messages.status = 'pending_parent_reply' ORDER BY messages.seq",
            (request,),
        )
        return [_message(row) for row in rows]

    def all_pending(self) -> list[Message]:
        """The questions that nobody has answered yet, of all runs, the oldest first."""
        rows = self._database.rows(
            "SELECT messages.* FROM runs JOIN messages ON messages.run_id = runs.id"
            " WHERE runs.ended_at IS NULL AND messages.status = 'pending_parent_reply' ORDER BY messages.seq"
        )
        return [_message(row) for row in rows]

    def pending(self, run_id: RunId) -> list[Message]:
        """The questions that nobody has answered yet."""
        rows = self._database.rows(
            "SELECT * FROM messages WHERE run_id = ? AND status = 'pending_parent_reply' ORDER BY seq",
            (run_id,),
        )
        return [_message(row) for row in rows]


_SOURCE = {
    MessageStatus.REPLIED: MessageStatus.PENDING,
    MessageStatus.ACKNOWLEDGED: MessageStatus.REPLIED,
}


def _change(
    tx: Transaction, message_id: MessageId, after: MessageStatus, changes: str, text: str | None = None
) -> RunId:
    row = tx.execute("SELECT run_id, status FROM messages WHERE id = ?", (message_id,)).fetchone()
    if row is None:
        raise _unknown(message_id)
    if row["status"] != _SOURCE[after]:
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
            "text": None if text is None else storable(text),
        },
    )
    run_id = RunId(row["run_id"])
    tx.touch(run_id)
    return run_id


def _go_on(tx: Transaction, run_id: RunId) -> None:
    """Before runs that have not started: this one is already under way and keeps its process alive."""
    needs_slot, owner = tx.execute("SELECT needs_slot, owner FROM runs WHERE id = ?", (run_id,)).fetchone()
    if not owner:  # parked: whoever adopts it goes on
        tx.execute(
            "UPDATE runs SET status = 'queued', waiting_since = NULL, changed_at = ? WHERE id = ?",
            (tx.now, run_id),
        )
    elif needs_slot:
        tx.execute(
            "UPDATE runs SET turn = ?, changed_at = ? WHERE id = ?", (queue.served_turn(tx), tx.now, run_id)
        )
    else:
        queue.resume(tx, run_id, slot=False)


def _unknown(message_id: MessageId) -> RunUnknown:
    return RunUnknown(f"no such message: {message_id}", message_id=message_id)


def _message(row: Row) -> Message:
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
        permission=None if row["permission"] is None else _from_json(row["permission"]),
    )


def _to_json(permission: PermissionWanted) -> str:
    asked = permission.asked
    kept = {"tool": asked.tool, "subject": asked.subject, "details": asked.details}
    kept |= {"rule": permission.rule, "wait_s": permission.wait_s}
    return storable(json.dumps(kept, ensure_ascii=False))


def _from_json(text: str) -> PermissionWanted:
    kept = json.loads(text)
    asked = ToolRequest(kept["tool"], kept["subject"], kept["details"])
    return PermissionWanted(asked, kept["rule"], kept["wait_s"])
