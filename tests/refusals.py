"""Bad input must give one clear line."""

from collections.abc import Callable

import pytest


def refused(call: Callable, *args, saying: tuple[str, ...]) -> str:
    """The message of the ValueError that `call(*args)` raises: one line that has all of `saying`."""
    with pytest.raises(ValueError, match=r"\A.+\Z") as error:
        call(*args)
    message = str(error.value)
    assert not [words for words in saying if words not in message], message
    return message
