"""The schema of the database, as migrations. New ones are appended; a released one is never edited.

Triggers enforce the rules for status changes, so that no process of any version can break them. They use
`a = 1 OR a = 2` instead of `a IN (1, 2)`, because SQLite builds a table for a longer list at every check.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from retinue.core import Unavailable


def m001_runs(db: sqlite3.Connection) -> None:
    db.execute("""
        CREATE TABLE runs (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            parent TEXT REFERENCES runs(id),
            request TEXT NOT NULL,
            agent TEXT NOT NULL,
            caller TEXT NOT NULL,
            task TEXT NOT NULL,
            executor TEXT NOT NULL,
            command TEXT,
            model TEXT,
            tools TEXT NOT NULL,
            queue_s REAL,
            run_s REAL,
            budget TEXT NOT NULL,
            endpoint TEXT,
            endpoint_slots INTEGER,
            needs_slot INTEGER NOT NULL CHECK (needs_slot IN (0, 1)),
            owner TEXT NOT NULL,
            host TEXT NOT NULL,

            status TEXT NOT NULL DEFAULT 'queued',
            turn INTEGER,                          -- its place while it queues for a slot, else null
            slot INTEGER NOT NULL DEFAULT 0,       -- 1 while it holds a slot
            enqueued_at REAL NOT NULL,
            started_at REAL,
            waiting_since REAL,
            ended_at REAL,
            deadline_at REAL,
            changed_at REAL NOT NULL,
            cancel_requested_at REAL,
            pid INTEGER,
            pid_started_at TEXT,
            usage TEXT NOT NULL DEFAULT '{}',
            result TEXT,
            error TEXT,
            summary TEXT,
            exit_code INTEGER,

            CHECK (slot IN (0, 1)),
            CHECK (slot = 0 OR (status = 'running' AND turn IS NULL)),
            CHECK (turn IS NULL OR ended_at IS NULL),
            CHECK ((ended_at IS NULL)
                = (status = 'queued' OR status = 'running' OR status = 'waiting_parent_reply')),
            CHECK ((waiting_since IS NOT NULL) = (status = 'waiting_parent_reply')),
            CHECK (started_at IS NOT NULL
                OR (status <> 'running' AND status <> 'waiting_parent_reply' AND status <> 'success')),
            CHECK ((pid IS NULL) = (pid_started_at IS NULL))
        )""")
    # The queue, the slots and the owners to look after: small, as it holds active runs only.
    db.execute("CREATE INDEX runs_active ON runs (slot, turn) WHERE ended_at IS NULL")
    db.execute("CREATE INDEX runs_of_request ON runs (request)")
    db.execute("CREATE INDEX runs_of_parent ON runs (parent) WHERE parent IS NOT NULL")

    db.execute("""
        CREATE TRIGGER runs_begin_queued BEFORE INSERT ON runs
        WHEN NEW.status <> 'queued'
        BEGIN SELECT RAISE(ABORT, 'a run begins queued'); END""")
    db.execute("""
        CREATE TRIGGER runs_change_legally BEFORE UPDATE OF status ON runs
        WHEN NEW.status <> OLD.status AND NOT CASE NEW.status
            WHEN 'running' THEN OLD.status = 'queued' OR OLD.status = 'waiting_parent_reply'
            WHEN 'waiting_parent_reply' THEN OLD.status = 'running'
            WHEN 'success' THEN OLD.status = 'running' OR OLD.status = 'waiting_parent_reply'
            WHEN 'error' THEN OLD.ended_at IS NULL
            WHEN 'timeout' THEN OLD.ended_at IS NULL
            WHEN 'canceled' THEN OLD.ended_at IS NULL
            WHEN 'interrupted' THEN OLD.ended_at IS NULL
            ELSE 0 END
        BEGIN SELECT RAISE(ABORT, 'illegal change of a run''s status'); END""")
    db.execute("""
        CREATE TRIGGER runs_end_once BEFORE UPDATE ON runs
        WHEN OLD.ended_at IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'a run that has ended never changes'); END""")
    db.execute("""
        CREATE TRIGGER runs_keep_identity BEFORE UPDATE OF
            seq, id, parent, request, agent, caller, task, executor, owner, host, enqueued_at ON runs
        BEGIN SELECT RAISE(ABORT, 'what a run is never changes'); END""")


def m002_messages(db: sqlite3.Connection) -> None:
    db.execute("""
        CREATE TABLE messages (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            run_id TEXT NOT NULL REFERENCES runs(id),
            question TEXT NOT NULL,
            answer TEXT,
            status TEXT NOT NULL DEFAULT 'pending_parent_reply',
            asked_at REAL NOT NULL,
            replied_at REAL,
            acknowledged_at REAL,
            closed_at REAL,
            changed_at REAL NOT NULL,

            CHECK (status IN ('pending_parent_reply', 'parent_replied',
                              'acknowledged_by_subagent', 'closed')),
            CHECK ((answer IS NULL) = (replied_at IS NULL)),
            CHECK (status NOT IN ('parent_replied', 'acknowledged_by_subagent') OR answer IS NOT NULL),
            CHECK ((acknowledged_at IS NOT NULL) = (status = 'acknowledged_by_subagent')),
            CHECK ((closed_at IS NOT NULL) = (status = 'closed'))
        )""")
    db.execute("CREATE INDEX messages_of_run ON messages (run_id, status)")
    db.execute("""
        CREATE TRIGGER messages_begin_pending BEFORE INSERT ON messages
        WHEN NEW.status <> 'pending_parent_reply'
        BEGIN SELECT RAISE(ABORT, 'a message begins unanswered'); END""")
    db.execute("""
        CREATE TRIGGER messages_change_legally BEFORE UPDATE OF status ON messages
        WHEN NOT CASE OLD.status
            WHEN 'pending_parent_reply' THEN NEW.status IN ('parent_replied', 'closed')
            WHEN 'parent_replied' THEN NEW.status IN ('acknowledged_by_subagent', 'closed')
            ELSE 0 END
        BEGIN SELECT RAISE(ABORT, 'illegal change of a message''s status'); END""")
    db.execute("""
        CREATE TRIGGER messages_keep_identity BEFORE UPDATE OF seq, id, run_id, question, asked_at ON messages
        BEGIN SELECT RAISE(ABORT, 'what a message asks never changes'); END""")
    db.execute("""
        CREATE TRIGGER runs_close_messages AFTER UPDATE OF status ON runs
        WHEN NEW.ended_at IS NOT NULL
        BEGIN
            UPDATE messages SET status = 'closed', closed_at = NEW.ended_at, changed_at = NEW.ended_at
            WHERE run_id = NEW.id AND status IN ('pending_parent_reply', 'parent_replied');
        END""")


def m003_events(db: sqlite3.Connection) -> None:
    db.execute("""
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY,
            run_id TEXT NOT NULL REFERENCES runs(id),
            at REAL NOT NULL,
            kind TEXT NOT NULL,
            data TEXT NOT NULL
        )""")
    db.execute("CREATE INDEX events_of_run ON events (run_id, seq)")
    db.execute("""
        CREATE TRIGGER events_never_change BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'an event never changes'); END""")
    # States are plain words without quotes, so that the JSON can be put together without SQLite's
    # JSON functions, which older builds lack.
    db.execute("""
        CREATE TRIGGER runs_tell_record AFTER INSERT ON runs
        BEGIN
            INSERT INTO events (run_id, at, kind, data)
            VALUES (NEW.id, NEW.changed_at, 'status', '{"status": "' || NEW.status || '"}');
        END""")
    db.execute("""
        CREATE TRIGGER runs_tell_status AFTER UPDATE OF status ON runs
        WHEN NEW.status <> OLD.status
        BEGIN
            INSERT INTO events (run_id, at, kind, data)
            VALUES (NEW.id, NEW.changed_at, 'status', '{"status": "' || NEW.status || '"}');
        END""")
    db.execute("""
        CREATE TRIGGER runs_tell_cancel AFTER UPDATE OF cancel_requested_at ON runs
        WHEN OLD.cancel_requested_at IS NULL AND NEW.cancel_requested_at IS NOT NULL
        BEGIN
            INSERT INTO events (run_id, at, kind, data)
            VALUES (NEW.id, NEW.changed_at, 'cancel_requested', '{}');
        END""")
    db.execute("""
        CREATE TRIGGER messages_tell_question AFTER INSERT ON messages
        BEGIN
            INSERT INTO events (run_id, at, kind, data) VALUES (NEW.run_id, NEW.changed_at, 'message',
                '{"messageId": "' || NEW.id || '", "messageStatus": "' || NEW.status || '"}');
        END""")
    db.execute("""
        CREATE TRIGGER messages_tell_status AFTER UPDATE OF status ON messages
        BEGIN
            INSERT INTO events (run_id, at, kind, data) VALUES (NEW.run_id, NEW.changed_at, 'message',
                '{"messageId": "' || NEW.id || '", "messageStatus": "' || NEW.status || '"}');
        END""")


def m004_ledgers(db: sqlite3.Connection) -> None:
    db.execute("""
        CREATE TABLE ledgers (
            request TEXT NOT NULL REFERENCES runs(id),
            kind TEXT NOT NULL,
            most INTEGER CHECK (most >= 0),          -- null: not limited
            taken INTEGER NOT NULL DEFAULT 0,        -- spent, or handed to a process that may spend it
            PRIMARY KEY (request, kind),
            CHECK (taken >= 0),
            CHECK (taken <= most)
        ) WITHOUT ROWID""")


def m005_child_tokens(db: sqlite3.Connection) -> None:
    db.execute("""
        CREATE TABLE child_tokens (
            run_id TEXT PRIMARY KEY REFERENCES runs(id),
            digest TEXT NOT NULL UNIQUE
        ) WITHOUT ROWID""")


def m006_runs_of_endpoint(db: sqlite3.Connection) -> None:
    """Index to find the agents that an endpoint served last."""
    db.execute("""
        CREATE INDEX runs_of_endpoint ON runs (endpoint, ended_at)
        WHERE started_at IS NOT NULL AND ended_at IS NOT NULL""")


def m007_workflows(db: sqlite3.Connection) -> None:
    """Tables for workflows, and resumable runs: they outlive their server and wait without an owner."""
    db.execute("ALTER TABLE runs ADD COLUMN resumable INTEGER NOT NULL DEFAULT 0")
    db.execute("DROP TRIGGER runs_change_legally")
    db.execute("""
        CREATE TRIGGER runs_change_legally BEFORE UPDATE OF status ON runs
        WHEN NEW.status <> OLD.status AND NOT CASE NEW.status
            WHEN 'queued' THEN OLD.resumable AND OLD.ended_at IS NULL
            WHEN 'running' THEN OLD.status = 'queued' OR OLD.status = 'waiting_parent_reply'
            WHEN 'waiting_parent_reply' THEN OLD.status = 'running'
            WHEN 'success' THEN OLD.status = 'running' OR OLD.status = 'waiting_parent_reply'
            WHEN 'error' THEN OLD.ended_at IS NULL
            WHEN 'timeout' THEN OLD.ended_at IS NULL
            WHEN 'canceled' THEN OLD.ended_at IS NULL
            WHEN 'interrupted' THEN OLD.ended_at IS NULL
            ELSE 0 END
        BEGIN SELECT RAISE(ABORT, 'illegal change of a run''s status'); END""")
    db.execute("DROP TRIGGER runs_keep_identity")
    db.execute("""
        CREATE TRIGGER runs_keep_identity BEFORE UPDATE OF
            seq, id, parent, request, agent, caller, task, executor, resumable, enqueued_at ON runs
        BEGIN SELECT RAISE(ABORT, 'what a run is never changes'); END""")
    db.execute("""
        CREATE TRIGGER runs_keep_owner BEFORE UPDATE OF owner, host ON runs
        WHEN NOT OLD.resumable
        BEGIN SELECT RAISE(ABORT, 'what a run is never changes'); END""")
    db.execute("CREATE INDEX runs_parked ON runs (status) WHERE owner = '' AND ended_at IS NULL")
    db.execute("""
        CREATE TABLE workflows (
            run_id TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            source TEXT NOT NULL,
            assignment TEXT NOT NULL,
            cwd TEXT NOT NULL
        ) WITHOUT ROWID""")
    db.execute("""
        CREATE TABLE checkpoints (
            run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
            step TEXT NOT NULL,
            began_at REAL NOT NULL,
            child TEXT,                            -- the newest run that performs it
            ended_at REAL,
            output TEXT,
            PRIMARY KEY (run_id, step),
            CHECK ((ended_at IS NULL) = (output IS NULL))
        ) WITHOUT ROWID""")
    db.execute("""
        CREATE TRIGGER checkpoints_stand BEFORE UPDATE ON checkpoints
        WHEN OLD.ended_at IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'a step that has finished stays so'); END""")


def m008_permissions(db: sqlite3.Connection) -> None:
    """The permission that a question asks for, as JSON; null for a question that is answered in words."""
    db.execute("ALTER TABLE messages ADD COLUMN permission TEXT")
    db.execute("""
        CREATE TRIGGER messages_keep_permission BEFORE UPDATE OF permission ON messages
        BEGIN SELECT RAISE(ABORT, 'what a message asks never changes'); END""")


def m009_late_summaries(db: sqlite3.Connection) -> None:
    """A run that has ended may still get a summary; nothing else of it changes."""
    db.execute("DROP TRIGGER runs_end_once")
    db.execute("""
        CREATE TRIGGER runs_end_once BEFORE UPDATE OF
            command, model, tools, queue_s, run_s, budget, endpoint, endpoint_slots, needs_slot, owner, host,
            status, turn, slot, started_at, waiting_since, ended_at, deadline_at, cancel_requested_at, pid,
            pid_started_at, usage, result, error, exit_code ON runs
        WHEN OLD.ended_at IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'a run that has ended never changes'); END""")


def m010_quotas(db: sqlite3.Connection) -> None:
    """Accounts whose usage limit is spent, and runs that wait for them, also without a server."""
    db.execute("""
        CREATE TABLE quotas (
            account TEXT PRIMARY KEY,
            reset_at REAL NOT NULL,
            spent_at REAL NOT NULL,
            reason TEXT NOT NULL,
            stated INTEGER NOT NULL CHECK (stated IN (0, 1))
        ) WITHOUT ROWID""")
    db.execute("ALTER TABLE runs ADD COLUMN account TEXT")
    db.execute("ALTER TABLE runs ADD COLUMN cwd TEXT")
    # A queued run starts no earlier. It may go back to the queue, and another process may adopt it.
    db.execute("ALTER TABLE runs ADD COLUMN not_before REAL")
    db.execute("DROP TRIGGER runs_change_legally")
    db.execute("""
        CREATE TRIGGER runs_change_legally BEFORE UPDATE OF status ON runs
        WHEN NEW.status <> OLD.status AND NOT CASE NEW.status
            WHEN 'queued' THEN (OLD.resumable OR NEW.not_before IS NOT NULL) AND OLD.ended_at IS NULL
            WHEN 'running' THEN OLD.status = 'queued' OR OLD.status = 'waiting_parent_reply'
            WHEN 'waiting_parent_reply' THEN OLD.status = 'running'
            WHEN 'success' THEN OLD.status = 'running' OR OLD.status = 'waiting_parent_reply'
            WHEN 'error' THEN OLD.ended_at IS NULL
            WHEN 'timeout' THEN OLD.ended_at IS NULL
            WHEN 'canceled' THEN OLD.ended_at IS NULL
            WHEN 'interrupted' THEN OLD.ended_at IS NULL
            ELSE 0 END
        BEGIN SELECT RAISE(ABORT, 'illegal change of a run''s status'); END""")
    db.execute("DROP TRIGGER runs_keep_owner")
    db.execute("""
        CREATE TRIGGER runs_keep_owner BEFORE UPDATE OF owner, host ON runs
        WHEN NOT OLD.resumable AND OLD.not_before IS NULL
        BEGIN SELECT RAISE(ABORT, 'what a run is never changes'); END""")


Migration = Callable[[sqlite3.Connection], None]
"""One step that changes the tables of a database."""

MIGRATIONS: Sequence[Migration] = (
    m001_runs,
    m002_messages,
    m003_events,
    m004_ledgers,
    m005_child_tokens,
    m006_runs_of_endpoint,
    m007_workflows,
    m008_permissions,
    m009_late_summaries,
    m010_quotas,
)


def migrate(db: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply the missing migrations in one transaction. Concurrent processes wait for each other."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations):
            raise Unavailable(
                f"the data folder was written by a newer version of retinue (store version {version})",
                hint="upgrade retinue, or set RETINUE_DATA_DIR to another folder",
            )
        for migration in migrations[version:]:
            migration(db)
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
