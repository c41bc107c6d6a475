"""Stands in for the module of a node: does what its arguments say, and prints what it finds."""

import os
import random
import signal
import sys
import threading
import time
import warnings

FOUND = ('OSMABENCH_RUN', 'ROS_DOMAIN_ID', 'LEFT_BEHIND')
hosted = 0


def main() -> int:
    global hosted
    hosted += 1
    words = sys.argv[1:]
    print(f'process {os.getpid()} hosts node {hosted} in {os.getcwd()}')
    print({name: os.environ.get(name) for name in FOUND})
    warnings.warn('said in every run', stacklevel=1)
    os.environ['LEFT_BEHIND'] = 'by a node'
    os.chdir('/')
    if 'memory' in words:
        held = random.randbytes(1) * (300 << 20)
        time.sleep(0.5)
        print(len(held))
    if 'thread' in words:
        threading.Thread(target=time.sleep, args=(600,)).start()
    if 'abort' in words:
        os.abort()
    if 'raise' in words:
        raise ValueError('not foreseen')
    if 'wait' in words:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        print('waiting')
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            print('interrupted')
        signal.signal(signal.SIGINT, before)
    return int(words[0])
