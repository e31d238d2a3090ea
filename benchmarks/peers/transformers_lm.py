"""transformers on PyTorch: prefill, decoding with its cache, and one training step, with weights of the same shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import Contender


class Peer:
    """A causal language model of transformers with random weights, built from our configuration."""

    def __init__(self, config: dict[str, Any]):
        try:
            import torch
            from transformers import AutoConfig, AutoModelForCausalLM
        except ImportError as error:
            raise ImportError(
                f"{error.name} is not installed, and this benchmark measures against it: "
                "pip install torch==2.13.0 transformers==5.24.0"
            ) from error
        self.torch = torch
        torch.manual_seed(0)
        settings = AutoConfig.for_model(**config)
        self.model = AutoModelForCausalLM.from_config(settings, attn_implementation="sdpa").to(torch.float32)
        self.vocab = config["vocab_size"]

    def prefill(self, tokens: np.ndarray) -> Contender:
        """Read every row's tokens into a new cache, and predict the next one."""
        torch, ids = self.torch, self.torch.tensor(tokens)
        model = self.model.eval()

        def run():
            with torch.inference_mode():
                model(ids, use_cache=True, logits_to_keep=1)

        return Contender("transformers", run, tokens.size, unit="tokens/s")

    def decode(self, tokens: np.ndarray, count: int) -> Contender:
        """`count` greedy tokens of every row, after its prompt was read once."""
        torch = self.torch
        model = self.model.eval()
        with torch.inference_mode():
            prompt = model(torch.tensor(tokens), use_cache=True, logits_to_keep=1)
        cache, first = prompt.past_key_values, prompt.logits[:, -1].argmax(-1, keepdim=True)

        def run():
            with torch.inference_mode():
                if cache.get_seq_length() > tokens.shape[1]:
                    cache.crop(tokens.shape[1] - cache.get_seq_length())
                token = first
                for _ in range(count):
                    token = model(token, past_key_values=cache, use_cache=True).logits[:, -1].argmax(-1, keepdim=True)

        return Contender("transformers", run, len(tokens) * count, unit="tokens/s")

    def train(self, tokens: np.ndarray) -> Contender:
        """Loss of every token given those before it, its gradient, and an AdamW step."""
        ids = self.torch.tensor(tokens)
        model = self.model.train()
        optimiser = self.torch.optim.AdamW(model.parameters(), lr=1e-5)

        def run():
            optimiser.zero_grad(set_to_none=True)
            model(ids, labels=ids, use_cache=False).loss.backward()
            optimiser.step()

        return Contender("transformers", run, tokens.size, unit="tokens/s")
