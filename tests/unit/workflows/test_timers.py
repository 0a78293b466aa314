"""Deadlines: one thread, in order, cancelled ones never."""

from __future__ import annotations

import threading

from kilonova.workflows.timers import Heap, TimerThread


def test_timers_fire_in_order_of_their_deadline_and_an_earlier_one_overtakes() -> None:
    timers, seen, last = TimerThread(), [], threading.Event()
    timers.after(0.05, lambda: (seen.append("late"), last.set()))
    timers.after(0.01, seen.append, "early")
    assert last.wait(2)
    timers.close()
    assert seen == ["early", "late"]


def test_a_cancelled_timer_never_fires_and_a_failing_one_stops_nothing() -> None:
    timers, seen, last = TimerThread(), [], threading.Event()
    timers.after(0.005, seen.append, "cancelled").cancel()
    timers.after(0.01, lambda: 1 / 0)
    timers.after(0.02, last.set)
    assert last.wait(2)
    timers.close()
    assert seen == []


def test_cancelled_timers_do_not_stay_in_memory() -> None:
    heap = Heap()
    kept = [heap.push(3600.0, print, ())[0] for _ in range(10)]
    for _ in range(20_000):
        heap.push(3600.0, print, ())[0].cancel()
    assert len(heap) < 5_000
    assert all(timer.function is print for timer in kept)
    assert len(heap.pop(4000.0)) == 10


def test_cancelling_twice_or_after_firing_is_harmless() -> None:
    heap = Heap()
    timer, _ = heap.push(1.0, print, ())
    assert len(heap.pop(1.0)) == 1
    timer.cancel()
    timer.cancel()
    assert heap.pop(9.0) == []


def test_closing_ends_the_thread_at_once() -> None:
    timers = TimerThread("closing")
    timers.after(3600, print)
    timers.close()
    assert not any(thread.name == "closing" for thread in threading.enumerate())
