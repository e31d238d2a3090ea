"""A small trained tokenizer, templates in the styles of several families, and chats to render."""

import functools
from typing import Any

from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from jaxscope.agents.llm.tokenizer import FastTokenizer

CONTROLS = ("<|begin|>", "<|im_start|>", "<|im_end|>", "<|head|>", "<|/head|>", "<|eot|>")
NAMED: dict[str, Any] = {"bos_token": "<|begin|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}
PLAIN_ADDED = ("<think>", "</think>")

CORPUS = [
    "the food is to the left of the wall and the agent walks to the right of it",
    "I'll wait for you at the door, then we lift the apple together; that gives 12 points!",
    "where is the other agent?\n\nit stands at row 3 and column 14 of the grid\n",
    "system user assistant tool: hello there, what do you see now?",
] * 3

CHATML = """\
{% for m in messages %}{% if loop.first and m.role != 'system' %}{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}\
{% endif %}{{ '<|im_start|>' ~ m['role'] ~ '\n' ~ m['content'] ~ '<|im_end|>\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
"""

LLAMA3 = """\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now('%d %b %Y') %}
{%- endif %}
{%- set start = 0 %}
{%- set system = '' %}
{%- if messages[0].role == 'system' %}
    {%- set start = 1 %}
    {%- set system = messages[0].content | trim %}
{%- endif %}
{{- '<|head|>system<|/head|>\n\nToday: ' + date_string + '\n\n' + system + '<|eot|>' }}
{%- for m in messages[start:] %}
    {{- '<|head|>' + m.role + '<|/head|>\n\n' + m.content | trim + '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\n\n' }}
{%- endif %}
"""

# Headers are plain text, and the line end after an answer is there only once something follows.
OLMO = """\
{{ bos_token }}{% for m in messages %}
{% if m.role == 'assistant' %}
{{ '<|assistant|>\n' + m.content + eos_token }}{% if not loop.last %}{{ '\n' }}{% endif %}
{% else %}
{{ '<|' + m.role + '|>\n' + m.content + '\n' }}
{%- endif %}
{% if loop.last and add_generation_prompt %}
{% if m.role == 'assistant' %}{{ '\n' }}{% endif %}
{{ '<|assistant|>\n' }}
{%- endif %}{% endfor %}
"""

# Reasoning is shown in turns after the last question only.
QWEN3 = """\
{%- set state = namespace(question=-1) %}
{%- for m in messages[::-1] %}
    {%- if state.question < 0 and m.role == 'user' %}
        {%- set state.question = messages | length - 1 - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set ns = namespace(text=m.content, thought='') %}
    {%- if m.role == 'assistant' %}
        {%- if m.reasoning_content is string %}
            {%- set ns.thought = m.reasoning_content %}
        {%- elif '</think>' in ns.text %}
            {%- set ns.thought = ns.text.split('</think>')[0].split('<think>')[-1].strip('\n') %}
            {%- set ns.text = ns.text.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + m.role + '\n' }}
    {%- if m.role == 'assistant' and loop.index0 > state.question and (loop.last or ns.thought) %}
        {{- '<think>\n' + ns.thought + '\n</think>\n\n' }}
    {%- endif %}
    {{- ns.text + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""

# Lists what may be called, and puts the results of several calls into one turn.
TOOLS = """\
{%- for m in messages %}
    {%- if loop.first %}
        {{- '<|im_start|>system\n' + (m.content if m.role == 'system' else '') }}
        {%- for tool in tools or [] %}
            {{- '\n' + (tool | tojson) }}
        {%- endfor %}
        {%- for document in documents or [] %}
            {{- '\n' ~ loop.index ~ '. ' ~ document.title ~ ': ' ~ document.text }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
        {%- if m.role == 'system' %}{% continue %}{% endif %}
    {%- endif %}
    {%- if m.role == 'tool' %}
        {%- if loop.first or loop.previtem.role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<result>' + m.content + '</result>' }}
        {%- if loop.last or loop.nextitem.role != 'tool' %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- elif m.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' }}
        {%- generation %}
            {{- m.content or '' }}
            {%- for call in m.tool_calls or [] %}
                {{- '\n<call>' + call.function.name + ' ' + call.function.arguments | tojson(indent=2) + '</call>' }}
            {%- endfor %}
            {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\n' }}
    {%- elif m.role == 'user' or m.role == 'system' %}
        {{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
    {%- else %}
        {{- raise_exception('no role is called ' + m.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

STABLE = {"chatml": CHATML, "llama3": LLAMA3, "olmo": OLMO, "tools": TOOLS}
TEMPLATES = {**STABLE, "qwen3": QWEN3}


@functools.cache
def backend() -> Tokenizer:
    """Merges of byte pairs learned from the corpus; 6 control tokens and two that texts may hold."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in CONTROLS])
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in PLAIN_ADDED])
    return made


@functools.cache
def tokenizer(style: str = "chatml") -> FastTokenizer:
    """The small tokenizer with one of the templates; as in SmolLM2, padding is the end of turn."""
    ends = ("<|eot|>",) if style == "llama3" else ("<|im_end|>",)
    return FastTokenizer(
        Tokenizer.from_str(backend().to_str()),
        named_tokens=NAMED,
        end_of_turn_ids=[id for id in (backend().token_to_id(end) for end in ends) if id is not None],
        chat_template=TEMPLATES[style],
    )


def texts(max_size: int = 24) -> st.SearchStrategy[str]:
    """Any Unicode text, often with words of the corpus, control tokens and white space."""
    pieces = st.sampled_from(
        [*CONTROLS, *PLAIN_ADDED, "the agent", " food", "\n", "  ", "12", "<|", "|>", "é", "\ufdd0"]
    )
    letters = st.text(st.characters(codec="utf-8"), max_size=6)
    return st.lists(pieces | letters, max_size=max_size // 4).map("".join)


def clean(text: str) -> str:
    """The text without control tokens, which neither end nor begin with white space."""
    for control in (*CONTROLS, *PLAIN_ADDED):
        text = text.replace(control, "")
    return "a" + text.strip() + "."


def chats(content: st.SearchStrategy[str], min_size: int = 1) -> st.SearchStrategy[list[dict]]:
    """Perhaps a system message, then messages of user and assistant by turns."""
    system = st.lists(content.map(lambda text: {"role": "system", "content": text}), max_size=1)
    turns = st.lists(content, min_size=min_size, max_size=5).map(
        lambda parts: [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(parts)]
    )
    return st.tuples(system, turns).map(lambda both: both[0] + both[1])
