"""Chat templates render as transformers renders them, and texts of messages cannot make control tokens."""

import datetime
import functools
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_texts import CONTROLS, NAMED, TEMPLATES, backend, chats, texts, tokenizer
from transformers import PreTrainedTokenizerFast

from jaxscope.agents.llm.byte_tokenizer import ByteTokenizer
from jaxscope.agents.llm.chat import encode_chat, render
from jaxscope.agents.llm.escape import escape, unescape
from jaxscope.agents.llm.tokenizer import FastTokenizer

NOW = datetime.datetime(2025, 3, 9, 12)
styles = pytest.mark.parametrize("style", sorted(TEMPLATES))


@functools.cache
def reference() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer.from_str(backend().to_str()), **NAMED)


def rendered(template: str, messages: list, **options: Any) -> str:
    """The text by transformers and by the library, which must be one."""
    theirs = reference().apply_chat_template(messages, chat_template=template, tokenize=False, **options)
    assert render(template, messages, **{**NAMED, **options}) == theirs
    assert isinstance(theirs, str)
    return theirs


@styles
@given(messages=chats(texts()), prompt=st.booleans())
@settings(max_examples=25, deadline=None)
def test_texts_are_those_of_transformers(style, messages, prompt):
    options: dict[str, Any] = {"date_string": "9 March"} if style == "llama3" else {}
    text = rendered(TEMPLATES[style], messages, add_generation_prompt=prompt, **options)
    assert messages[-1]["content"].strip().partition("</think>")[0] in text


@styles
@given(messages=chats(texts()))
@settings(max_examples=25, deadline=None)
def test_ids_are_those_of_transformers_with_control_tokens_in_messages_as_text(style, messages):
    options: dict[str, Any] = {"date_string": "9 March"} if style == "llama3" else {}
    # Its markers are other characters than ours; texts that hold either are compared in the tests of marks.
    messages = [{**message, "content": message["content"].replace("\ufdd0", "")} for message in messages]
    theirs = reference()
    theirs.chat_control_tokens = list(CONTROLS)
    ids = theirs.apply_chat_template(
        messages, chat_template=TEMPLATES[style], sanitize_control_tokens=True, return_dict=False, **options
    )
    assert encode_chat(tokenizer(style), messages, **options) == ids


TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Où? <b>'\"</b>", "parameters": {"type": "object", "properties": {}}},
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts(12),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_tools_their_calls_and_documents_render_as_by_transformers(data: st.DataObject):
    arguments = data.draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=3))
    call = {"type": "function", "function": {"name": "look", "arguments": arguments}}
    results = data.draw(st.lists(texts(), max_size=3))
    messages = [
        *data.draw(st.sampled_from([[], [{"role": "system", "content": "é"}]])),
        {"role": "user", "content": data.draw(texts())},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        *({"role": "tool", "content": text} for text in results),
    ]
    tools = data.draw(st.sampled_from([None, [], [TOOL], [TOOL, TOOL]]))
    documents = data.draw(st.sampled_from([None, [], [{"title": "A", "text": "b"}]]))
    text = rendered(TEMPLATES["tools"], messages, tools=tools, documents=documents)
    assert ("Où? <b>'" in text) == bool(tools)


@pytest.mark.parametrize("field", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_is_found_under_each_of_its_names(field):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", field: "why"}]
    assert "<think>\nwhy\n</think>" in rendered(TEMPLATES["qwen3"], messages)
    assert (
        rendered("{% for m in messages %}{{ m.thinking }}{{ m.reasoning_content }}{% endfor %}", messages) == "whywhy"
    )


@pytest.mark.parametrize("thinking", [True, False])
def test_variables_reach_the_template(thinking):
    messages = [{"role": "user", "content": "q"}]
    text = rendered(TEMPLATES["qwen3"], messages, add_generation_prompt=True, enable_thinking=thinking)
    assert text.endswith("</think>\n\n") == (not thinking)


def test_blocks_leave_no_lines_and_loops_can_be_left():
    template = """
    {% for m in messages %}
        {% if loop.index == 2 %}{% break %}{% endif %}
  {{ m.content }}
    {% endfor %}
end"""
    messages = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    assert rendered(template, messages) == "\n  one\nend"


def test_what_a_block_sets_stays_within_the_tag_of_generation():
    template = "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{{ messages | length }}{% endgeneration %}{{ x }}"
    assert rendered(template, [{"role": "user", "content": ""}]) == "211"


def test_json_is_written_as_it_stands():
    template = "{{ messages[0].data | tojson }}{{ messages[0].data | tojson(indent=1, sort_keys=true) }}"
    assert rendered(template, [{"role": "user", "data": {"b": "<é'\">", "a": [1.5, True]}}]).startswith('{"b": "<é\'')


def test_the_time_is_the_one_given():
    messages = [{"role": "user", "content": "hi"}]
    assert "Today: 09 Mar 2025" in render(TEMPLATES["llama3"], messages, now=NOW, **NAMED)
    now = datetime.datetime.now().strftime("%Y")
    assert f" {now}\n" in render(TEMPLATES["llama3"], messages, **NAMED)


@pytest.mark.parametrize(
    ("template", "messages", "message"),
    [
        ("{{ raise_exception('only users') }}", [{"role": "a"}], "fails on this chat: only users"),
        ("{{ messages[0].content + 1 }}", [{"role": "a", "content": "b"}], "fails on this chat"),
        ("{% if %}", [{"role": "a"}], "fails on this chat"),
        ("{{ nothing.at.all }}", [{"role": "a"}], "'nothing' is undefined"),
        ("", [], "at least one message"),
        ("", ["hello"], "messages must be dicts"),
    ],
)
def test_chats_that_do_not_fit_are_refused(template, messages, message):
    with pytest.raises(ValueError, match=message):
        render(template, messages)


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ raise_exception.__globals__.x }}",
        "{{ dict.__globals__.x }}",
        "{{ namespace.__init__.__globals__ }}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{{ namespace(_x=1) }}",
        "{{ messages.append(1) }}",
    ],
)
def test_templates_stay_in_the_sandbox(template):
    with pytest.raises(ValueError, match="fails on this chat"):
        render(template, [{"role": "a"}])


def test_formats_show_nothing_of_the_program():
    shown = render("{{ '{0.__class__}'.format(messages) }}|{{ raise_exception.__globals__ }}", [{"role": "a"}])
    assert shown == "|"


@given(text=texts(), known=st.sampled_from([tokenizer(), ByteTokenizer()]))
@settings(max_examples=50, deadline=None)
def test_marks_hide_control_tokens_and_are_taken_off_again(text, known):
    marked = escape(text, known)
    assert unescape(marked, known) == text
    assert not any(control in marked for control in known.control_tokens)


@styles
@given(messages=chats(texts()))
@settings(max_examples=20, deadline=None)
def test_control_tokens_come_from_the_template_alone(style, messages):
    def count(chat: list) -> list[int]:
        ids = encode_chat(tokenizer(style), chat, now=NOW)
        return [id for id in ids if id in tokenizer(style).control_tokens.values()]

    assert count(messages) == count([{**message, "content": "x"} for message in messages])


def test_control_tokens_in_tools_are_text():
    tool = {"name": "<|im_end|>"}
    one = tokenizer("tools")
    ids = encode_chat(one, [{"role": "user", "content": "x"}], tools=[tool])
    assert ids.count(one.control_tokens["<|im_end|>"]) == 2  # of the system's turn and the user's
    assert "<|im_end|>" in one.decode(ids)


def test_what_json_has_not_is_refused():
    with pytest.raises(ValueError, match="texts, numbers, lists and dicts, not object"):
        encode_chat(tokenizer(), [{"role": "user", "content": object()}])


def test_tokenizers_without_a_template_cannot_chat():
    bare = FastTokenizer(backend(), named_tokens={}, end_of_turn_ids=[])
    with pytest.raises(ValueError, match="no chat template"):
        encode_chat(bare, [{"role": "user", "content": "x"}])


def test_the_byte_tokenizer_has_a_template():
    one = ByteTokenizer()
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u<|end|>"}]
    ids = encode_chat(one, messages, tools=[{"name": "t"}], add_generation_prompt=True)
    shown = '<|begin|><|system|>{"name": "t"}\n<|end|>\n<|system|>s<|end|>\n<|user|>u<|end|><|end|>\n<|assistant|>'
    assert one.decode(ids, special=True) == shown
    assert ids.count(one.end_of_turn_ids[0]) == 3
    with pytest.raises(ValueError, match="the role is king, not system"):
        encode_chat(one, [{"role": "king", "content": ""}])
