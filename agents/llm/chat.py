"""Chat templates: messages to text and ids, with the variables and functions that Hugging Face gives to templates."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from jaxscope.agents.llm.escape import encode_marked, escape
from jaxscope.agents.llm.tokenizer import Tokenizer

Message = Mapping[str, Any]
# Names that reasoning goes by in messages; templates read the first, some the second.
_REASONING = ("reasoning_content", "thinking", "reasoning")


def render(
    template: str,
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    now: datetime.datetime | None = None,
    **variables: Any,
) -> str:
    """The text of a chat.

    The template runs in Jinja's sandbox, since it comes with a model from elsewhere.

    Args:
        messages: Each with a role and content; entries that are None count as absent.
        tools: JSON schemas of what the model may call.
        documents: Each with title and text.
        add_generation_prompt: Whether the header of the assistant's next turn ends the text.
        now: The time told to templates that ask for it; the present if None.
        variables: Further ones for the template, `bos_token` or `enable_thinking` for instance.
            What they hold may become control tokens.

    Raises:
        ValueError: there are no messages, or the template fails or refuses the chat.
    """
    if not messages:
        raise ValueError("a chat needs at least one message")
    for name, entries in {"messages": messages, "tools": tools, "documents": documents}.items():
        if not all(isinstance(entry, Mapping) for entry in entries or ()):
            raise ValueError(f"{name} must be dicts")
    time = now or datetime.datetime.now()
    values = {
        "strftime_now": lambda form: time.strftime(form),
        **variables,
        "messages": [_whole(message) for message in messages],
        "tools": None if tools is None else [dict(tool) for tool in tools],
        "documents": None if documents is None else [dict(document) for document in documents],
        "add_generation_prompt": add_generation_prompt,
    }
    try:
        return _compiled(template).render(values)
    except (jinja2.TemplateError, TypeError) as error:
        raise ValueError(f"the chat template fails on this chat: {error}") from error


def encode_chat(tokenizer: Tokenizer, messages: Sequence[Message], **options: Any) -> list[int]:
    """Ids of a chat by the tokenizer's own template; no text in messages, tools or documents makes a control token.

    Args:
        options: As for `render`.
    """
    return encode_marked(render_marked(tokenizer, escape(messages, tokenizer), **options), tokenizer)


def render_marked(
    tokenizer: Tokenizer,
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    documents: Sequence[Mapping[str, Any]] | None = None,
    **options: Any,
) -> str:
    """The text of a chat by the tokenizer's own template, of messages that `escape` has marked."""
    if tokenizer.chat_template is None:
        raise ValueError("this tokenizer has no chat template")
    return render(
        tokenizer.chat_template,
        messages,
        tools=escape(tools, tokenizer),
        documents=escape(documents, tokenizer),
        **{**tokenizer.named_tokens, **options},
    )


def _whole(message: Message) -> dict[str, Any]:
    """The message without absent entries, its reasoning under each name that templates look for."""
    present = {name: value for name, value in message.items() if value is not None}
    reasoning = next((present[name] for name in _REASONING if name in present), None)
    return present if reasoning is None else {"thinking": reasoning, **present, "reasoning_content": reasoning}


class _Generation(jinja2.ext.Extension):
    """The tag that some templates put round an assistant's text; what is within renders as if it were not there."""

    tags: ClassVar[set[str]] = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return [jinja2.nodes.Scope(body, lineno=line)]


class _Namespace(jinja2.utils.Namespace):
    """Jinja's namespace, closed to names with which a template could pass for another kind of object."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise jinja2.TemplateError(f"a template may not set {name}")
        super().__setitem__(name, value)


def _namespace(*args: Any, **attributes: Any) -> _Namespace:
    made = _Namespace()
    for name, value in dict(*args, **attributes).items():
        made[name] = value
    return made


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@lru_cache(maxsize=64)
def _compiled(template: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {
        "raise_exception": _refuse,
        "namespace": _namespace,
        "dict": lambda *args, **entries: dict(*args, **entries),
    }
    return environment.from_string(template)
