"""The order of the queue, over all owners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retinue.core import Budget, Endpoint, OwnerId, QueueFull, RunId, RunLimits, RunSpec, RunStatus
from retinue.store import Capacity
from tests.store.store_support import ANYTHING, DONE, ROOMY, SPEC, Bench


def order_of_start(bench: Bench, names: dict[RunId, str], slots: int = 1) -> str:
    """Serve the queue until it is empty, one free slot at a time."""
    capacity = Capacity(slots, 1000)
    order = ""
    at_work: list[RunId] = []
    while True:
        admitted = bench.admit(capacity)
        order += "".join(names[run_id] for run_id in admitted)
        at_work += admitted
        if not at_work:
            return order
        bench.store.runs.finish(at_work.pop(0), DONE)


def tree(bench: Bench, name: str, count: int, names: dict[RunId, str]) -> RunId:
    """A coordinating run with this many queued children."""
    parent = bench.queued(replace(SPEC, needs_slot=False))
    for _ in range(count):
        names[bench.queued(bench.child_of(parent.id)).id] = name
    return parent.id


def test_runs_of_one_tree_start_first_in_first_out(bench: Bench) -> None:
    parent = bench.running()
    ids = [bench.queued(bench.child_of(parent.id)).id for _ in range(5)]
    assert bench.admit(ROOMY) == ids


def test_trees_take_turns_regardless_of_their_queue_length(bench: Bench) -> None:
    names: dict[RunId, str] = {}
    tree(bench, "a", 5, names)
    tree(bench, "b", 3, names)
    tree(bench, "c", 1, names)
    assert order_of_start(bench, names) == "abcababaa"


def test_new_tree_waits_for_one_round_only(bench: Bench) -> None:
    names: dict[RunId, str] = {}
    tree(bench, "a", 6, names)
    capacity = Capacity(1, 100)
    for _ in range(3):
        [run_id] = bench.admit(capacity)
        bench.store.runs.finish(run_id, DONE)
    tree(bench, "b", 2, names)
    assert order_of_start(bench, names) == "ababa"


def test_tree_that_keeps_asking_does_not_starve_others(bench: Bench) -> None:
    names: dict[RunId, str] = {}
    greedy = tree(bench, "g", 1, names)
    tree(bench, "p", 4, names)
    capacity = Capacity(1, 100)
    order = ""
    for _ in range(8):
        [run_id] = bench.admit(capacity)
        order += names[run_id]
        if names[run_id] == "g":
            names[bench.queued(bench.child_of(greedy)).id] = "g"
        bench.store.runs.finish(run_id, DONE)
    assert order == "gpgpgpgp"


def test_cap_holds_over_all_owners_and_only_the_owner_starts_its_run(bench: Bench) -> None:
    """P2"""
    other = OwnerId.new()
    theirs = bench.store.runs.record(SPEC, other)
    ours = bench.queued()
    one, two = Capacity(1, 10), Capacity(2, 10)
    assert bench.admit(one) == []
    assert bench.admit(two) == [ours.id]
    assert bench.store.queue.admit(other, one, ANYTHING) == []
    assert bench.store.queue.admit(other, two, ANYTHING) == [theirs.id]


def test_full_endpoint_does_not_delay_runs_of_others(bench: Bench) -> None:
    local = replace(SPEC, endpoint=Endpoint("local", 1))
    first, second, third = bench.queued(local), bench.queued(local), bench.queued(local)
    free = bench.queued()
    capacity = Capacity(3, 10)
    admitted: list[RunId] = []
    while more := bench.admit(capacity):
        admitted += more
    assert admitted == [first.id, free.id]
    bench.store.runs.finish(first.id, DONE)
    assert bench.admit(capacity) == [second.id]
    assert bench.status(third.id) is RunStatus.QUEUED


def served_at_an_endpoint(bench: Bench, agents: str, slots: int = 1) -> str:
    """The order in which an endpoint serves the queued runs; each letter is the agent of a run."""
    capacity = Capacity(10, 1000)
    names: dict[RunId, str] = {}
    for agent in agents:
        run = bench.queued(replace(SPEC, agent=agent, endpoint=Endpoint("local", slots)))
        names[run.id] = agent
    order = ""
    at_work: list[RunId] = []
    while True:
        bench.clock.now += 1
        admitted = bench.admit(capacity)
        assert len(admitted) + len(at_work) <= slots
        order += "".join(names[run_id] for run_id in admitted)
        at_work += admitted
        if not at_work:
            return order
        bench.store.runs.finish(at_work.pop(0), DONE)


def test_endpoint_prefers_runs_of_the_agent_it_served_last(bench: Bench) -> None:
    """The agent's prompt is then still in the server's cache."""
    assert served_at_an_endpoint(bench, "abcabca") == "aaabbcc"


def test_preference_for_one_agent_ends_after_a_few_runs(bench: Bench) -> None:
    assert served_at_an_endpoint(bench, "ab" + "a" * 9) == "aaaabaaaaaa"


def test_endpoint_with_two_slots_serves_two_agents_side_by_side(bench: Bench) -> None:
    assert served_at_an_endpoint(bench, "abbbaa", slots=2) == "ababab"


def test_preferred_run_does_not_displace_runs_of_other_endpoints(bench: Bench) -> None:
    """The order between one endpoint and the others does not change."""
    local = replace(SPEC, agent="a", endpoint=Endpoint("local", 1))
    one = Capacity(1, 100)
    first = bench.queued(local)
    bench.admit(one)
    free, other, alike = bench.queued(), bench.queued(replace(local, agent="b")), bench.queued(local)
    order: list[RunId] = []
    ended = first.id
    for _ in range(3):
        bench.store.runs.finish(ended, DONE)
        bench.clock.now += 1
        [ended] = bench.admit(one)
        order.append(ended)
    assert order == [free.id, alike.id, other.id]


def test_full_queue_refuses_a_run_and_records_nothing(bench: Bench) -> None:
    """P2, P8"""
    capacity = Capacity(max_concurrent=1, max_queued=2)

    def record(spec: RunSpec = SPEC) -> RunId:
        return bench.store.runs.record(spec, bench.owner_id, capacity).id

    record()
    bench.admit(capacity)
    waiting = record(), record()
    with pytest.raises(QueueFull) as refused:
        record()
    assert refused.value.as_dict()["code"] == "saturated"
    places = {"running": 1, "queued": 2, "limit": 2, "slots": 1, "slots_free": 0, "waiting_for_quota": 0}
    assert refused.value.data == places
    assert "2 of 2 places are taken; 1 run at work, 0 of 1 slot free" in refused.value.message
    assert "try again when a run has ended" in (refused.value.hint or "")
    assert len(bench.store.runs.list()) == 3
    record(replace(SPEC, needs_slot=False))
    bench.store.runs.request_cancel(waiting[0])
    record()


def test_queue_of_length_zero_still_gives_out_free_slots(bench: Bench) -> None:
    capacity = Capacity(max_concurrent=1, max_queued=0)
    bench.store.runs.record(SPEC, bench.owner_id, capacity)
    with pytest.raises(QueueFull):
        bench.store.runs.record(SPEC, bench.owner_id, capacity)


def test_released_slot_serves_other_runs(bench: Bench) -> None:
    one = Capacity(1, 10)
    parent = bench.queued()
    bench.admit(one)
    child = bench.queued(bench.child_of(parent.id))
    later = bench.queued()
    assert bench.store.queue.release_slot(parent.id)
    assert bench.admit(one) == [child.id]
    assert bench.status(later.id) is RunStatus.QUEUED
    assert not bench.store.queue.release_slot(later.id)


def test_deadline_counts_from_queueing_then_from_the_start(bench: Bench) -> None:
    run = bench.queued(replace(SPEC, limits=RunLimits(queue_s=5, run_s=30)))
    assert run.timing.deadline_at == bench.clock.now + 5
    bench.clock.now += 3
    bench.admit(ROOMY)
    started = bench.store.runs.get(run.id).timing
    assert started.started_at == bench.clock.now
    assert started.deadline_at == bench.clock.now + 30


def test_run_without_a_time_limit_has_no_deadline_after_its_start(bench: Bench) -> None:
    run = bench.running(replace(SPEC, limits=RunLimits(queue_s=5)))
    assert run.timing.deadline_at is None


def test_runs_that_wait_for_their_children_lend_them_their_slots(bench: Bench) -> None:
    """P5: otherwise the parents hold all slots, and nothing ever ends."""
    local = replace(SPEC, endpoint=Endpoint("local", 1), limits=RunLimits(budget=Budget(spawns=2)))
    one = Capacity(1, 10)
    parent, other = bench.queued(local), bench.queued(local)
    assert bench.admit(one) == [parent.id]
    child = bench.queued(replace(local, parent=parent.id))
    [first] = bench.admit(one)
    assert bench.admit(one) == [], "one at a time"
    bench.store.runs.finish(first, DONE)
    [second] = bench.admit(one)
    assert {first, second} == {child.id, other.id}, "whoever's turn it is, all of them work in the end"
