"""`jaxscope chat` through a pseudo-terminal, with the built-in model."""

import pytest

from jaxscope.cli import main
from tests.test_play import Terminal


def test_a_conversation_in_the_terminal(tmp_path):
    terminal = Terminal(tmp_path, "chat", "tiny", "--answer", "6", "--context", "200")
    assert "92,480 parameters" in terminal.read_until("> ")
    terminal.press("hello\n")
    terminal.read_until("> ")
    terminal.press("/again\n")
    terminal.read_until("> ")
    terminal.press("\n")
    assert terminal.status() == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--answer", "0"], "answer = 0: must be at least 1"),
        (["--temperature", "-1"], "temperature = -1.0: must be at least 0"),
        (["--context", "5000"], "a context of 5000 tokens does not fit: the model has 1024"),
    ],
)
def test_bad_options_end_with_one_line(capsys, words, message):
    with pytest.raises(SystemExit) as stopped:
        main(["chat", "tiny", *words])
    assert stopped.value.code != 0
    assert message in capsys.readouterr().err


def test_models_are_listed(capsys):
    main(["list", "models"])
    assert "smollm2-135m" in capsys.readouterr().out
