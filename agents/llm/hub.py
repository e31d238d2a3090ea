"""Where a model's name leads: to a folder or file at hand, a packaged model, or one of a hub."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from jaxscope.agents.llm import packaged
from jaxscope.agents.llm.gguf_weights import GgufWeights
from jaxscope.agents.llm.safetensors_folder import SafetensorsFolder

#: Weights, configurations and tokenizers, at the top of a repository.
WANTED = ("*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt")
#: Files of other tools, and weights a second time.
UNWANTED = ("*/*", "consolidated*.safetensors")


def resolve(name: str | Path) -> Path:
    """The local folder (of safetensors) or GGUF file of a model.

    Args:
        name: an existing folder or `.gguf` file; a packaged model, such as `smollm2-135m`; or `organisation/name` of
            the Hugging Face hub, perhaps with `@revision`, for which the extra `hub` must be installed. What the hub's
            cache holds is taken without asking the network.

    Raises:
        ValueError: it is none of these, or cannot be had.
    """
    name = str(name)
    local = Path(name).expanduser()
    if name and (local.is_dir() or (local.suffix == ".gguf" and local.is_file())):
        return local
    if name in packaged.MODELS:
        return packaged.path(name)
    if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?", name) and local.suffix != ".gguf":
        return _from_hub(*name.partition("@")[::2])
    raise ValueError(
        f"there is no model {name!r}: it must be an existing folder, an existing .gguf file, a packaged model "
        f"({', '.join(packaged.MODELS)}), or organisation/name of the Hugging Face hub"
    )


def source(path: Path) -> SafetensorsFolder | GgufWeights:
    """The tensors and the configuration of what `resolve` gives.

    Raises:
        ValueError: as `SafetensorsFolder` and `GgufWeights`.
    """
    return SafetensorsFolder(path) if path.is_dir() else GgufWeights(path)


def _from_hub(repository: str, revision: str) -> Path:
    try:
        snapshot_download = importlib.import_module("huggingface_hub").snapshot_download
    except ImportError as error:
        raise ValueError(
            f"there is no folder {repository!r}; to have it from the Hugging Face hub, pip install 'jaxscope[hub]'"
        ) from error
    options = {
        "repo_id": repository,
        "revision": revision or None,
        "allow_patterns": list(WANTED),
        "ignore_patterns": list(UNWANTED),
    }
    try:
        cached = Path(snapshot_download(**options, local_files_only=True))
        SafetensorsFolder(cached).close()  # the cache may hold a part only, such as a tokenizer
    except (OSError, ValueError):
        pass
    else:
        return cached
    try:
        return Path(snapshot_download(**options))
    except Exception as error:  # of several libraries: of the hub, of its network, of the file system
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"there is no folder {repository!r}, and the Hugging Face hub says: {said[0]}") from error
