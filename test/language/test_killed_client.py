"""A client that is killed outright loses nothing that was answered."""

import json
import signal
import subprocess
import sys
import time

from support.loopback_models import LoopbackModels
from support.waiting import wait_until

PROGRAM = """
import json, sys
from pathlib import Path
from osmabench_ros.language.cache import ResponseCache
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.model import ModelRequest
from osmabench_ros.language.settings import make_language_model
model = make_language_model('openai:m', {'base_url': sys.argv[1]})
client = ModelClient(model, cache=ResponseCache(Path(sys.argv[2])), concurrency=2)
requests = [ModelRequest(f'Prompt {i}') for i in range(20)]
outcomes = client.ask_all(requests, lambda text: json.loads(text)['said'])
print(json.dumps([outcome.value for outcome in outcomes]))
"""


def test_after_a_kill_only_what_was_not_answered_is_asked(tmp_path):
    def slow(prompt):
        time.sleep(0.05)
        return json.dumps({'said': prompt})

    with LoopbackModels(reply=slow) as server:
        command = [sys.executable, '-c', PROGRAM, server.url, str(tmp_path)]
        first = subprocess.Popen(command)
        wait_until(lambda: len(server.received) >= 6, step=lambda: time.sleep(0.01))
        first.send_signal(signal.SIGKILL)
        first.wait()
        time.sleep(0.3)
        asked, kept = len(server.received), len(list(tmp_path.rglob('*.json')))
        assert 0 < kept <= asked < 20
        second = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert json.loads(second.stdout) == [f'Prompt {i}' for i in range(20)]
        assert len(server.received) - asked == 20 - kept
        assert asked - kept <= 2, 'at most what was under way is asked again'
