"""Checks rates, losses and stamps of a running stack."""

from __future__ import annotations

import numpy as np

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.doctor.finding import Finding, Severity
from osmabench_ros.bringup.running_stack.stack_observation import TopicRecord
from osmabench_ros.ros.messages.poses import SECOND_NS, stamp_from_message

RATE_SHARE = 0.9
"""Least share of the declared rate, and of equal stamps, that passes."""

LOSS_SHARE = 0.01
WALL_WINDOW_NS = 24 * 3600 * SECOND_NS
"""Stamps this near to the system's time are taken from it; others are simulated."""

FUTURE_NS = 100_000_000
OLD_NS = 5 * SECOND_NS
CLOCK_WINDOW_NS = SECOND_NS


def check_rate(record: TopicRecord, declared_hz: float | None) -> list[Finding]:
    """Compare the rate of a topic with the declared one; None for none, as in lockstep."""
    count = len(record.received_ns)
    if not count:
        return []
    if count < 3:
        remedy = 'is the camera running? else listen longer: --seconds'
        detail = f'only {count} messages came: too few for rate and stamps'
        return [Finding(record.name, Severity.WARN, detail, remedy)]
    intervals_s = np.diff(record.received_ns) / SECOND_NS
    detail = (
        f'{record.rate_hz:.1f} Hz, jitter {np.std(intervals_s) * 1e3:.0f} ms, {count} messages'
    )
    if declared_hz:
        detail += f', declared {declared_hz:g} Hz'
    if record.lost > LOSS_SHARE * count:
        detail += f', {record.lost} lost on the way here'
        remedy = (
            'images need larger shared memory: '
            'export FASTRTPS_DEFAULT_PROFILES_FILE=.../config/fastdds.xml for every node'
        )
        return [Finding(record.name, Severity.WARN, detail, remedy)]
    if declared_hz and record.rate_hz < RATE_SHARE * declared_hz:
        remedy = 'the publisher does not keep up: smaller images, a lower rate, or lockstep'
        return [Finding(record.name, Severity.WARN, detail, remedy)]
    return [Finding(record.name, Severity.OK, detail)]


def check_stamps(record: TopicRecord, *, simulated: bool) -> list[Finding]:
    """Check that stamps are set, grow, and belong to the clock in use: /clock if `simulated`."""
    stamps = np.array(record.stamps_ns, np.int64)
    if not len(stamps):
        return []
    name = record.name
    # The first frame of a simulation may have stamp 0, all may not.
    if not stamps.any():
        remedy = 'set header.stamp to the time of exposure'
        level = Severity.FAILED if len(stamps) > 1 else Severity.WARN
        return [Finding(name, level, 'header.stamp is 0', remedy)]
    if len(stamps) > 2 and len(set(stamps.tolist())) == 1:
        remedy = 'does the camera hang, or does the run wait for an acknowledgement?'
        detail = f'{len(stamps)} messages have one and the same stamp'
        return [Finding(name, Severity.WARN, detail, remedy)]
    findings = []
    if (np.diff(stamps) < 0).any():
        detail = f'stamps go backwards {int((np.diff(stamps) < 0).sum())} times'
        remedy = 'is a bag looping, or do two nodes publish?'
        findings.append(Finding(name, Severity.WARN, detail, remedy))
    ahead_ns = (stamps - np.array(record.wall_ns[: len(stamps)], np.int64))[stamps != 0]
    of_wall = bool((np.abs(ahead_ns) < WALL_WINDOW_NS).all())
    if of_wall and simulated:
        remedy = 'set use_sim_time on the node that publishes it'
        detail = 'stamps are wall time, but /clock is published'
        findings.append(Finding(name, Severity.FAILED, detail, remedy))
    elif not of_wall and not simulated:
        detail = f'stamps are {stamps[-1] / SECOND_NS:.1f} s, neither near the time nor a /clock'
        remedy = 'play with --clock, or stamp with the wall time'
        findings.append(Finding(name, Severity.WARN, detail, remedy))
    elif of_wall and np.median(ahead_ns) > FUTURE_NS:
        detail = f'stamps are {np.median(ahead_ns) / SECOND_NS:.2f} s in the future'
        remedy = 'synchronise the clocks of the machines (chrony)'
        findings.append(Finding(name, Severity.FAILED, detail, remedy))
    elif of_wall and np.median(ahead_ns) < -OLD_NS:
        detail = f'stamps are {-np.median(ahead_ns) / SECOND_NS:.1f} s old when they come'
        remedy = 'synchronise the clocks, or shorten what lies between camera and topic'
        findings.append(Finding(name, Severity.WARN, detail, remedy))
    return findings


def check_clock(record: TopicRecord | None, color: TopicRecord | None) -> list[Finding]:
    """Check that simulated time advances, and that frames are stamped with it."""
    if record is None or not record.messages:
        return []
    times = np.array([stamp_from_message(item.clock) for item in record.messages], np.int64)
    if (np.diff(times) < 0).any():
        detail = '/clock goes backwards'
        return [Finding(topics.CLOCK, Severity.FAILED, detail, 'one publisher alone; do not loop')]
    findings = []
    frames = len(set(color.stamps_ns)) if color else 0
    if frames > 2 and len(set(times.tolist())) == 1:
        detail = f'/clock stands still while {frames} frames came'
        remedy = 'who publishes it must follow the stamps'
        findings.append(Finding(topics.CLOCK, Severity.FAILED, detail, remedy))
    if color and color.stamps_ns:
        near_ns = int(np.abs(times - color.stamps_ns[-1]).min())
        if near_ns > CLOCK_WINDOW_NS:
            detail = f'/clock and the stamps of {color.name} are {near_ns / SECOND_NS:.1f} s apart'
            remedy = 'images and /clock must come from one source'
            findings.append(Finding(topics.CLOCK, Severity.FAILED, detail, remedy))
    return findings or [Finding(topics.CLOCK, Severity.OK, f'goes forward, {len(times)} messages')]


def check_synchrony(color: TopicRecord, other: TopicRecord) -> list[Finding]:
    """Check that a topic of a frame has the stamps of the colour images: all are identical."""
    ours, theirs = set(color.stamps_ns), set(other.stamps_ns)
    if len(ours) < 3 or len(theirs) < 3:
        return []
    # One may have come later, and the first and the last frame may have been cut.
    first, last = max(min(ours), min(theirs)), min(max(ours), max(theirs))
    shared = sorted(stamp for stamp in ours if first <= stamp <= last)
    inner = shared[1:-1] or shared
    if not inner:
        detail = f'the stamps are of another time than those of {color.name}'
        remedy = 'images and poses must come at the same time, stamped by one clock'
        return [Finding(other.name, Severity.FAILED, detail, remedy)]
    share = sum(stamp in theirs for stamp in inner) / len(inner)
    if share >= RATE_SHARE:
        detail = f'{share:.0%} of the stamps of {color.name} are here too'
        return [Finding(other.name, Severity.OK, detail)]
    points = np.array(sorted(theirs), np.int64)
    nearest_ns = [int(np.abs(points - stamp).min()) for stamp in inner]
    detail = (
        f'{share:.0%} of the stamps of {color.name} are here too; the nearest is '
        f'{np.median(nearest_ns) / 1e6:.1f} ms away'
    )
    remedy = (
        'frames are paired by equal stamps: synchronise the streams in the camera driver, or '
        'stamp depth, pose and camera_info with the stamp of the colour image'
    )
    # Images that get lost on the way look alike, so only what is never equal is sure.
    level = Severity.FAILED if share < 0.1 else Severity.WARN
    return [Finding(other.name, level, detail, remedy)]
