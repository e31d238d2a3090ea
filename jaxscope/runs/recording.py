"""Recordings: one episode of a team as a small animated picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from PIL import Image, ImageDraw, ImageFont

from jaxscope.drawing import SEAT_COLOURS
from jaxscope.evaluation.play import record
from jaxscope.files import file_name, write_bytes
from jaxscope.panel import Panel, join, subset
from jaxscope.runs import panels
from jaxscope.runs import settings as run_settings
from jaxscope.types import Environment, Renders

PAPER, INK, FAINT, GAIN = (255, 255, 255), (36, 36, 40), (120, 120, 126), (0, 128, 92)
#: Pictures are brought to a shorter side between these, in pixels.
SMALLEST, LARGEST = 320, 560
LINE, MARGIN, TEXT = 24, 10, 15
HOLD_MS = 2000


class Recording(NamedTuple):
    """What a recording shows."""

    steps: int
    team_return: float  # undiscounted


class _Caption(NamedTuple):
    """The words under one frame."""

    step: int
    steps: int
    team_return: float
    gain: float  # the reward since the frame before


def record_gif(
    env: Environment,
    panel: Panel,
    team_ids: Sequence[int],
    key: PRNGKeyArray,
    path: Path,
    *,
    frame_ms: int = 220,
    max_frames: int = 150,
    max_bytes: int = 500_000,
) -> Recording:
    """Play one episode and write it to `path` as an animated GIF that repeats for ever.

    Under the picture stand the step, the return so far and which member of the panel plays which colour. The same
    words are the file's comment. The last frame is held for two seconds.

    Args:
        team_ids: the member in each seat, an index into `panel.names`.
        key: the same key gives the same episode.
        frame_ms: how long a frame is shown, in milliseconds, at least 20.
        max_frames: a longer episode is shown with steps left out evenly; at least 2.
        max_bytes: a larger file is made smaller by shrinking the picture, at most to a quarter of its width.

    Raises:
        ValueError: the environment cannot draw itself, or an argument is out of its range.
    """
    if not isinstance(env, Renders):
        raise ValueError(f"{env.name} cannot be recorded: it has no method render(state)")
    team = [int(member) for member in team_ids]
    if len(team) != env.num_agents or not all(0 <= member < len(panel.names) for member in team):
        raise ValueError(
            f"team_ids = {team}: {env.name} needs {env.num_agents} of the members 0 to {len(panel.names) - 1}"
        )
    if frame_ms < 20 or max_frames < 2:
        raise ValueError(f"frame_ms = {frame_ms} must be at least 20 and max_frames = {max_frames} at least 2")

    states, rewards, length = record(env, panel.policies, panel.population, jnp.asarray(team, jnp.int32), key)
    steps = int(length)
    returns = np.concatenate([[0.0], np.cumsum(np.asarray(rewards, float))])[: steps + 1]
    names = [panel.names[member] for member in team]
    colours = SEAT_COLOURS  # of an environment that draws with others

    shown = _shown(steps, max_frames)
    frames = []
    for step, before in zip(shown, [0, *shown[:-1]], strict=True):
        picture = _sized(_picture(env, jax.tree.map(lambda leaf: leaf[step], states)))  # noqa: B023
        caption = _Caption(step, steps, float(returns[step]), float(returns[step] - returns[before]))
        frames.append(_captioned(picture, caption, names, colours))
    seats = ", ".join(f"{name} in seat {seat}" for seat, name in enumerate(names))
    comment = f"{seats}: return {returns[-1]:.2f} in {steps} steps"
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, _small_gif(frames, frame_ms, comment, max_bytes))
    return Recording(steps, float(returns[-1]))


def record_run(folder: Path, partners: Sequence[str], key: PRNGKeyArray) -> list[Path]:
    """Record one episode of a run's first seed, in seat 0, with each of the partners; files go to its `recordings/`.

    Args:
        partners: see `panels.resolve`.

    Raises:
        ValueError: the environment cannot draw itself, or there is no such run or partner.
    """
    env = run_settings.load(folder).make_env()
    others = panels.resolve(partners, env)
    first = subset(panels.of_run(folder, env), [0])
    learner = f"{first.names[0]} of {folder}" if first.names[0] in others.names else first.names[0]
    both = join(Panel((learner,), first.policies, first.population), others)
    written = []
    for name in others.names:
        team = [both.names.index(learner)] + [both.names.index(name)] * (env.num_agents - 1)
        written.append(folder / "recordings" / f"with-{file_name(name)}.gif")
        record_gif(env, both, team, jax.random.clone(key), written[-1])  # everybody begins in the same state
    return written


def _shown(steps: int, max_frames: int) -> list[int]:
    """The times whose states are shown, first and last included, evenly spaced."""
    stride = -(-steps // (max_frames - 1)) if steps else 1
    times = list(range(0, steps, stride))
    return [*times, steps]


def _picture(env: Renders, state) -> Image.Image:
    pixels = np.asarray(env.render(state))
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[-1] != 3:
        raise ValueError(f"render gave {pixels.dtype} {list(pixels.shape)}: it must give uint8 [height, width, 3]")
    return Image.fromarray(pixels)


def _sized(picture: Image.Image) -> Image.Image:
    """Small pictures enlarged by a whole factor, which keeps pixels square; large ones reduced."""
    shorter = min(picture.size)
    if shorter < SMALLEST:
        factor = -(-SMALLEST // shorter)
        return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    if shorter > LARGEST:
        return _scaled(picture, LARGEST / shorter)
    return picture


def _scaled(picture: Image.Image, factor: float) -> Image.Image:
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _captioned(picture: Image.Image, caption: _Caption, names: Sequence[str], colours: Sequence) -> Image.Image:
    """The picture with a strip below it: step and return on the left and right, then the seats, two to a line."""
    font = ImageFont.load_default(TEXT)
    columns = min(2, len(names))
    lines = 1 + -(-len(names) // columns)
    image = Image.new("RGB", (picture.width, picture.height + lines * LINE + MARGIN), PAPER)
    image.paste(picture, (0, 0))
    draw = ImageDraw.Draw(image)

    middle = picture.height + MARGIN // 2 + LINE // 2
    draw.text((MARGIN, middle), f"step {caption.step} of {caption.steps}", fill=FAINT, font=font, anchor="lm")
    right = image.width - MARGIN
    words = f"return {caption.team_return:.2f}"
    draw.text((right, middle), words, fill=INK, font=font, anchor="rm")
    if abs(caption.gain) > 1e-6:
        left = right - font.getlength(words) - MARGIN
        draw.text((left, middle), f"{caption.gain:+.2f}", fill=GAIN, font=font, anchor="rm")

    width = (image.width - 2 * MARGIN) // columns
    for seat, name in enumerate(names):
        x, y = MARGIN + seat % columns * width, middle + (1 + seat // columns) * LINE
        radius = TEXT // 2 - 1
        image.paste(tuple(colours[seat % len(colours)]), (x, y - radius), _disc(2 * radius + 1))
        room = width - 2 * radius - 2 * MARGIN
        draw.text((x + 2 * radius + 6, y), _fitting(name, room, font), fill=INK, font=font, anchor="lm")
    return image


def _disc(size: int) -> Image.Image:
    """A mask with a smooth edge: drawn eight times larger and scaled down."""
    mask = Image.new("L", (8 * size, 8 * size))
    ImageDraw.Draw(mask).ellipse([0, 0, 8 * size - 1, 8 * size - 1], fill=255)
    return mask.resize((size, size), Image.Resampling.LANCZOS)


def _fitting(text: str, room: float, font) -> str:
    """The text on one line, its end cut off where it is wider than `room` pixels."""
    text = " ".join(text.split())
    if font.getlength(text) <= room:
        return text
    while text and font.getlength(text + "...") > room:
        text = text[:-1]
    return text + "..."


def _small_gif(frames: Sequence[Image.Image], frame_ms: int, comment: str, max_bytes: int) -> bytes:
    factor, data = 1.0, _gif(frames, frame_ms, comment)
    while len(data) > max_bytes and factor > 0.25:
        factor = max(0.25, 0.8 * factor)
        data = _gif([_scaled(frame, factor) for frame in frames], frame_ms, comment)
    return data


def _gif(frames: Sequence[Image.Image], frame_ms: int, comment: str) -> bytes:
    """All frames in one palette, so that a frame can be stored as its difference to the one before."""
    samples = [frames[0], frames[len(frames) // 2], frames[-1]]
    sheet = Image.new("RGB", (frames[0].width, sum(sample.height for sample in samples)))
    for index, sample in enumerate(samples):
        sheet.paste(sample, (0, index * sample.height))
    palette = sheet.quantize(255)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = io.BytesIO()
    durations = [frame_ms] * len(others) + [HOLD_MS]
    # A comment block of a GIF ends at a zero byte.
    text = comment.replace("\0", " ").encode()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=durations, loop=0, comment=text)
    return buffer.getvalue()
