import threading

from support.waiting import wait_until

from osmabench_ros.errors import RunError
from osmabench_ros.runs.evaluation import EvaluationJob, EvaluationQueue


def waiting_job(gate, ended):
    def work(progress):
        while not gate.wait(0.01):
            progress('working', 0.5)

    return EvaluationJob(work, ended.append)


def submitted(*gates):
    """Return a queue of jobs that wait at gates, the jobs, and those that ended so far."""
    ended, queue = [], EvaluationQueue()
    jobs = [waiting_job(gate, ended) for gate in gates]
    for job in jobs:
        queue.submit(job)
    return queue, jobs, ended


def poll(queue, count, ended):
    """Poll a queue until so many jobs have ended."""

    def is_done():
        queue.poll()
        return len(ended) == count

    wait_until(is_done)


def test_jobs_run_one_at_a_time_in_order():
    gates = [threading.Event(), threading.Event()]
    queue, jobs, ended = submitted(*gates)
    gates[1].set()
    queue.poll()
    assert queue.current is jobs[0]
    assert not jobs[1].done
    gates[0].set()
    poll(queue, 2, ended)
    assert ended == jobs
    assert len(queue) == 0


def test_nothing_starts_unless_it_may():
    gate = threading.Event()
    gate.set()
    queue, _, ended = submitted(gate)
    queue.poll(start=False)
    assert queue.current is None
    poll(queue, 1, ended)


def test_a_job_in_the_queue_can_be_cancelled():
    queue, (first, second), ended = submitted(*[threading.Event()] * 2)
    queue.poll()
    second.cancel()
    poll(queue, 1, ended)
    assert ended == [second]
    assert second.cancelled
    first.cancel()
    poll(queue, 2, ended)


def test_stopping_ends_all_and_tells_all():
    queue, jobs, ended = submitted(*[threading.Event()] * 3)
    queue.poll()
    queue.stop()
    assert set(ended) == set(jobs)
    assert all(job.cancelled for job in jobs)


def test_an_unexpected_exception_is_an_error_that_names_it():
    def work(progress):
        raise KeyError('surprise')

    job = EvaluationJob(work, lambda _job: None)
    job.start()
    job.join(60.0)
    assert isinstance(job.error, RunError)
    assert "KeyError: 'surprise'" in str(job.error)
