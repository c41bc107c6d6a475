"""A small server on loopback that speaks the APIs of language models and misbehaves on demand."""

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from osmabench_ros.language.client import ModelClient, ResponseCache
from osmabench_ros.language.settings import make_language_model


@dataclass(frozen=True)
class Misstep:
    """How one request goes wrong.

    'status', 'hang', 'closed', 'truncated', 'refusal', 'empty', 'length', or 'raw': the bytes as
    they are, then `again` at an interval for as long as it is taken, then the end.
    """

    kind: str
    status: int = 500
    headers: tuple[tuple[str, str], ...] = ()
    body: str = '{"error": {"message": "out of order"}}'
    raw: bytes = b''
    again: bytes = b''
    interval_s: float = 0.0


@dataclass
class Received:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def results(self):
        """The results of the tools so far, in either API."""
        parts = [part for turn in self.body.get('contents', ()) for part in turn['parts']]
        found = [part['functionResponse'] for part in parts if 'functionResponse' in part]
        if found:
            return [response['response']['result'] for response in found]
        return [m['content'] for m in self.body.get('messages', ()) if m['role'] == 'tool']

    @property
    def prompt(self):
        """The text of the user's part, in either API."""
        if 'contents' in self.body:
            parts = self.body['contents'][0]['parts']
            return ''.join(part.get('text', '') for part in parts)
        content = next(m for m in self.body['messages'] if m['role'] == 'user')['content']
        if isinstance(content, str):
            return content
        return ''.join(part.get('text', '') for part in content)


@dataclass
class LoopbackModels:
    """The server; `reply` makes texts from prompts, `missteps` are used up before `always`."""

    reply: Callable[[str], str] = lambda prompt: json.dumps({'echo': len(prompt)})
    missteps: deque[Misstep] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    most_at_once: int = 0
    tokens: tuple[int, int] = (11, 7)
    act: Callable[[Received], str | list[tuple[str, str]]] | None = None
    """Replies in place of `reply` with a text, or with calls: name and arguments as they are."""
    always: Misstep | None = None

    def __enter__(self):
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._under_way = 0
        handler = type('Handler', (_Handler,), {'models': self})
        self._server = ThreadingHTTPServer(('127.0.0.1', 0), handler)
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True
        ).start()
        return self

    def __exit__(self, *exception):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self):
        """Address without a path."""
        return f'http://127.0.0.1:{self._server.server_address[1]}'

    def take(self, request):
        """Note a request and return what shall go wrong with it."""
        with self._lock:
            self.received.append(request)
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
            return self.missteps.popleft() if self.missteps else self.always

    def done(self):
        """Note that a request was answered."""
        with self._lock:
            self._under_way -= 1


class _Handler(BaseHTTPRequestHandler):
    models: LoopbackModels

    def do_POST(self):
        length = int(self.headers['Content-Length'])
        body = json.loads(self.rfile.read(length))
        request = Received(self.path, dict(self.headers), body)
        misstep = self.models.take(request)
        self._under_way = True
        try:
            self._answer(request, misstep)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self._done()

    def _done(self):
        if self._under_way:
            self._under_way = False
            self.models.done()

    def _answer(self, request, misstep):
        kind = misstep.kind if misstep else 'ok'
        if misstep is not None and kind == 'status':
            self._send(misstep.status, misstep.body, misstep.headers)
        elif kind == 'hang':
            self.models.released.wait(30)
        elif kind == 'closed':
            self.connection.close()
        elif misstep is not None and kind == 'raw':
            self.close_connection = True
            self.wfile.write(misstep.raw)
            while misstep.again and not self.models.released.wait(misstep.interval_s):
                self.wfile.write(misstep.again)
        else:
            act = self.models.act
            said = act(request) if act is not None else self.models.reply(request.prompt)
            calls = said if isinstance(said, list) else []
            text = '' if isinstance(said, list) else said
            text = text[: len(text) // 2] if kind == 'truncated' else text
            speak = _gemini if 'generateContent' in request.path else _openai
            self._send(200, json.dumps(speak(text, kind, self.models.tokens, calls)))

    def _send(self, status, body, headers=()):
        data = body.encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        # Before the answer leaves: the client may ask again while this thread still cleans up.
        self._done()
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def _openai(text, kind, tokens, calls):
    usage = {'prompt_tokens': tokens[0], 'completion_tokens': tokens[1]}
    if kind == 'empty':
        return {'choices': [], 'usage': usage}
    message = {'role': 'assistant', 'content': text}
    if calls:
        functions = [{'name': name, 'arguments': arguments} for name, arguments in calls]
        message['content'] = None
        message['tool_calls'] = [
            {'id': f'c{i}', 'type': 'function', 'function': function}
            for i, function in enumerate(functions)
        ]
    if kind == 'refusal':
        message = {'role': 'assistant', 'content': None, 'refusal': 'I would rather not.'}
    finish = 'length' if kind == 'length' else 'stop'
    return {'choices': [{'index': 0, 'message': message, 'finish_reason': finish}], 'usage': usage}


def _gemini(text, kind, tokens, calls):
    usage = {
        'promptTokenCount': tokens[0],
        'candidatesTokenCount': tokens[1] - 2,
        'thoughtsTokenCount': 2,
    }
    if kind == 'empty':
        return {'candidates': [], 'usageMetadata': usage}
    if kind == 'refusal':
        return {'promptFeedback': {'blockReason': 'SAFETY'}, 'usageMetadata': usage}
    parts = [
        {
            'functionCall': {'name': name, 'args': json.loads(arguments)},
            'thoughtSignature': 'c2lnbmVk',
        }
        for name, arguments in calls
    ]
    content = {'role': 'model', 'parts': parts or [{'text': text}]}
    finish = 'MAX_TOKENS' if kind == 'length' else 'STOP'
    return {'candidates': [{'content': content, 'finishReason': finish}], 'usageMetadata': usage}


def cached_client(server, folder, kind='openai', **more):
    """Return an impatient client of a server that keeps replies in a folder."""
    model = make_language_model(f'{kind}:m', {'base_url': server.url, 'timeout_s': 60.0})
    quick = {'attempts': 3, 'first_wait_s': 0.01, 'longest_wait_s': 0.05}
    return ModelClient(model, cache=ResponseCache(folder / 'cache'), **quick, **more)
