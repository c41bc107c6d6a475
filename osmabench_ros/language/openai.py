"""Models behind OpenAI's chat API: vLLM, Ollama, llama.cpp, OpenAI and others."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language import model as interface
from osmabench_ros.language.hosted import HostedModel
from osmabench_ros.language.settings import OPENAI_SERVER

_FUNCTION = {'name', 'arguments'}

# Parameters that some models take under another name, or not at all: reasoning models mostly.
_SUBSTITUTES: Mapping[str, str | None] = {
    'max_tokens': 'max_completion_tokens',
    'temperature': None,
    'seed': None,
}


class OpenAIModel(HostedModel):
    """One model of a compatible server, with the options of `ServerOptions`.

    `base_url` comes from OPENAI_BASE_URL if not set, else is OpenAI's. The key comes from
    OPENAI_API_KEY; local servers need none.
    """

    kind = 'openai'
    key_variables = ('OPENAI_API_KEY',)
    _unsupported: frozenset[str] = frozenset()

    def connect(self, address: str, http: Any) -> None:
        """Make the client of openai."""
        if not self._key and self.server == OPENAI_SERVER:
            need = f'a key in {self.key_variables[0]}, or the address of your server in base_url'
            raise LanguageModelError(f'{self.name} needs {need}')
        import openai

        self._rejected: type[Exception] = openai.BadRequestError
        # The library wants a key for servers that need none, too.
        key = self._key or 'none'
        client = openai.AsyncOpenAI(api_key=key, base_url=address, max_retries=0, http_client=http)
        self._create = client.chat.completions.create

    async def ask(
        self, request: interface.ModelRequest
    ) -> tuple[interface.ToolReply, interface.Usage]:
        """Ask; a parameter that the server calls unsupported is left out or renamed from then on.

        The request is then repeated at once: nothing was generated, or paid for.
        """
        while True:
            try:
                return self._read_answer(await self._create(**self._make_payload(request)))
            except self._rejected as error:
                parameter = getattr(error, 'param', None) or ''
                if parameter not in _SUBSTITUTES or parameter in self._unsupported:
                    raise
                self._unsupported |= {parameter}

    def _read_answer(self, completion: Any) -> tuple[interface.ToolReply, interface.Usage]:
        choice, counts = completion.choices[0], completion.usage
        message, finish = choice.message, choice.finish_reason
        declined = getattr(message, 'refusal', None)
        filtered = finish if finish == 'content_filter' else ''
        self.check_end(declined or filtered, is_cut_off=finish == 'length')
        calls = [
            interface.ToolCall(
                name=call.function.name,
                arguments=call.function.arguments or '{}',
                id=call.id or f'call_{place}',
            )
            for place, call in enumerate(message.tool_calls or ())
        ]
        sent, received = (counts.prompt_tokens, counts.completion_tokens) if counts else (0, 0)
        reply = interface.ToolReply(text=message.content or '', calls=tuple(calls))
        return reply, interface.Usage(sent or 0, received or 0)

    def _make_payload(self, request: interface.ModelRequest) -> dict[str, Any]:
        content = [*_encode_images(request.images), {'type': 'text', 'text': request.prompt}]
        messages = [
            {'role': 'system', 'content': request.system},
            {'role': 'user', 'content': content if request.images else request.prompt},
            *(message for turn in request.turns for message in _write_turn(turn)),
        ]
        payload: dict[str, Any] = {
            'model': self._model,
            'messages': messages if request.system else messages[1:],
            'temperature': request.temperature,
            'max_tokens': request.max_output_tokens,
            'seed': request.seed,
        }
        for name in self._unsupported:
            value = payload.pop(name)
            substitute = _SUBSTITUTES[name]
            if substitute is not None:
                payload[substitute] = value
        if request.schema is not None:
            schema = {'name': 'reply', 'strict': True, 'schema': dict(request.schema)}
            payload['response_format'] = {'type': 'json_schema', 'json_schema': schema}
        if request.tools:
            tools = [{'type': 'function', 'function': asdict(tool)} for tool in request.tools]
            payload['tools'] = tools
        return payload


def _encode_images(images: Sequence[interface.ImagePart]) -> list[dict[str, Any]]:
    """Return images as parts of a content."""
    encoded = ((image.media_type, base64.b64encode(image.data).decode()) for image in images)
    return [
        {'type': 'image_url', 'image_url': {'url': f'data:{kind};base64,{data}'}}
        for kind, data in encoded
    ]


def _write_turn(turn: interface.Turn) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn; results have no images in this API, the user shows them."""
    calls = [
        {'id': call.id, 'type': 'function', 'function': call.model_dump(include=_FUNCTION)}
        for call in turn.reply.calls
    ]
    yield {'role': 'assistant', 'content': turn.reply.text or None, 'tool_calls': calls}
    for call, result in zip(turn.reply.calls, turn.results, strict=True):
        yield {'role': 'tool', 'tool_call_id': call.id, 'content': result.text}
    if turn.images:
        yield {'role': 'user', 'content': _encode_images(turn.images)}
