import base64
import copy
import json
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from jaxscope.evaluation.intervals import Interval, rounded, t_interval
from jaxscope.runs.report import write_report
from jaxscope.runs.results import labels, parse_judgement, read_run
from jaxscope.runs.settings import FORMAT as CONFIG_FORMAT
from jaxscope.runs.tables import best_checkpoint, mean_over_training, result_tables

ENV = "lbf/2s-8x8-2p-3f"
HOSTILE = '<script>alert("x")</script> & $y^2$'
VOID = ("meta", "img")


class Page(HTMLParser):
    """Checks that elements close in order, and collects text, ids, addresses and elements."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts, self.ids, self.addresses = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def group(partners, seeds: int = 3, seed: int = 0, best="closest-food") -> dict:
    per_seat = np.random.default_rng(seed).uniform(0.2, 0.9, (seeds, len(partners), 2))
    per_partner = per_seat.mean(axis=2)
    mean, worst = per_partner.mean(axis=1), per_partner.min(axis=1)
    p = len(partners)
    return {
        "partners": list(partners),
        "descriptions": [f"What {name} does." for name in partners],
        "per_partner": per_partner.tolist(),
        "per_seat": per_seat.tolist(),
        "mean": mean.tolist(),
        "worst": worst.tolist(),
        "mean_interval": list(t_interval(mean)),
        "worst_interval": list(t_interval(worst)),
        "bounds": {"random": [0.111] * p, "best script": [0.944] * p, "best script name": [best] * p},
    }


def evaluation(method: str = "popplay", env: str = ENV, seeds: int = 3, seed: int = 0, **more) -> dict:
    return {
        "format": 1,
        "method": method,
        "env": env,
        "episodes": 50,
        "checkpoint": {"iteration": 30, "frames": 384_000},
        "groups": {
            "held-out": group(["closest-food", "team-center"], seeds, seed),
            "training": group(["sweeper", "follower"], seeds, seed + 1),
        },
        **more,
    }


def lines(seeds: int = 3, partners=("sweeper", "follower")) -> list[dict]:
    found = []
    for iteration in (10, 20, 30):
        for seed in range(seeds):
            line: dict[str, Any] = {"iteration": iteration, "frames": 12_800 * iteration, "seed": seed, "episodes": 512}
            line |= {"entropy": 1.79 - 0.01 * iteration, "kl": 0.01, "value_loss": 0.1}
            if iteration > 10:  # no episode ended before
                line |= {"return": 0.02 * iteration + 0.01 * seed, "length": 33.0}
            for name in ("partner_return", "partner_probability"):
                line[name] = dict.fromkeys(partners, 0.5 + 0.01 * iteration)
            found.append(line)
    return found


def write_run(
    folder,
    method: str = "popplay",
    env: str = ENV,
    partners=("training",),
    judged: bool | dict = True,
    metrics=None,
    **more,
):
    folder.mkdir(parents=True)
    config = {"ppo": {"learning_rate": 0.00025, "layers": [64, 64]}, "total_frames": 384_000}
    settings = {"method": method, "env": env, "seeds": 3, "seed": 0, "config": config, "partners": list(partners)}
    (folder / "config.json").write_text(
        json.dumps({"format": CONFIG_FORMAT, **settings, "versions": {"jax": "0.10.2"}, **more})
    )
    if judged:
        payload = evaluation(method, env) if judged is True else judged
        (folder / "eval.json").write_text(json.dumps(payload))
    for line in lines() if metrics is None else metrics:
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
    return folder


def report(tmp_path, *folders) -> Page:
    path = tmp_path / "new folder" / "report.html"
    write_report(list(folders), path)
    text = path.read_text()
    assert "http" not in text
    page = Page(text)
    assert all(address.startswith(("#", "data:image/gif;base64,")) for address in page.addresses)
    assert len(page.ids) == len(set(page.ids))
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    assert "script" not in {tag for tag, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    return page


def terminal(evals) -> str:
    console = Console(file=StringIO(), width=200)
    for table in result_tables(evals):
        console.print(table)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_report_and_terminal_show_every_number_and_partner(tmp_path):
    payload = evaluation()
    page = report(tmp_path, write_run(tmp_path / "first"))
    printed = terminal([payload])
    for result in payload["groups"].values():
        numbers = [str(Interval(*result["mean_interval"])), "0.111", "0.944"]
        for index in range(2):
            numbers.append(str(t_interval(np.array(result["per_partner"])[:, index])))
            seats = [t_interval(np.array(result["per_seat"])[:, index, seat]) for seat in range(2)]
            assert all(str(interval) in page.text for interval in seats)
            numbers += [f"{interval.mean:.3f}" for interval in seats]
        for shown in numbers + result["partners"]:
            assert shown in page.text
            assert shown in printed
        assert all(words in page.text for words in result["descriptions"])
    worst = str(Interval(*payload["groups"]["held-out"]["worst_interval"]))
    for shown in (worst, "384,000"):
        assert shown in page.text
        assert shown in printed
    assert "config.ppo.learning_rate 0.00025" in page.text
    assert "versions.jax 0.10.2" in page.text
    assert "95 % interval" in page.text


def shaped(payload: dict) -> dict:
    """An evaluation where half of the return is shaping, and soups are served."""
    for result in payload["groups"].values():
        half = {name: (0.5 * np.array(result[name])).tolist() for name in ("per_partner", "per_seat", "mean", "worst")}
        half |= {f"{name}_interval": list(t_interval(np.array(half[name]))) for name in ("mean", "worst")}
        counts = {
            "learner": {"served": [[1.25, 2.5]] * 3, "unheard-of": [[0, 0]] * 3},
            "partner": {"served": [[0, 7]] * 3},
        }
        result |= {"unshaped": half, "events": counts}
    return payload


def test_shaping_and_events_are_shown_apart(tmp_path):
    payload = shaped(evaluation())
    metrics = [line | ({"unshaped_return": 0.25} if "return" in line else {}) for line in lines()]
    page = report(tmp_path, write_run(tmp_path / "first", judged=payload, metrics=metrics))
    printed = terminal([payload])
    for result in payload["groups"].values():
        shown = [str(Interval(*result["unshaped"]["mean_interval"]))]
        shown += [str(t_interval(np.array(result["unshaped"]["per_partner"])[:, index])) for index in range(2)]
        for words in shown:
            assert words in page.text
            assert words in printed
    assert str(Interval(*payload["groups"]["held-out"]["unshaped"]["worst_interval"])) in printed
    assert "closest-food popplay 1.25 + 0.00" in page.text
    assert "team-center popplay 2.50 + 7.00" in page.text
    assert "unheard-of" not in page.text
    assert "Return without shaping" in page.text
    plain = terminal([evaluation()])
    assert "without shaping" in printed
    assert "without shaping" not in plain


OUTCOMES = ["met_east", "met_north", "met_west"]
MODES = {
    "outcomes": OUTCOMES,
    "shares": [[0.25, 0.5, 0.13], [0.44, 0.0, 0.44], [0.0, 0.0, 0.0]],
    "modes": [["met_north"], ["met_east", "met_west"], []],
    "population": 2,
    "distinct": 1.3333,
    "chance": 1.75,
}


def test_modes_are_shown_where_an_environment_names_outcomes(tmp_path):
    payload = evaluation("self-play", modes=MODES)
    page = report(tmp_path, write_run(tmp_path / "run", "self-play", judged=payload))
    printed = " ".join(terminal([payload]).split())
    for row in ("0 25 50 13 12 met_north", "1 44 0 44 12 met_east or met_west", "2 0 0 0 100 -", "3 1 2 1.33 1.75"):
        assert f"self-play {row}" in page.text
        assert f"self-play {row}" in printed
    few = terminal([evaluation("self-play", modes=MODES | {"population": 4, "distinct": None})])
    assert "self-play 3 1 4 - 1.75" in " ".join(few.split())
    # Beside a method that was evaluated without.
    both = terminal([payload, evaluation()])
    assert "Unsolved" in both
    for text in (terminal([evaluation()]), report(tmp_path, write_run(tmp_path / "plain")).text):
        assert "Unsolved" not in text
        assert "modes" not in text


def test_figures_have_as_many_decimals_as_they_need():
    assert [rounded(value) for value in (0.12345, -9.9994, 12.345, 345.678)] == ["0.123", "-9.999", "12.35", "345.7"]
    assert str(t_interval(np.array([340.0, 350.0, 345.0]))) == "345.0 ± 12.4"


def test_report_plots_what_was_logged(tmp_path):
    titles = [
        "Held-out partners: every training run",
        "Training partners, one by one",
        "Return of training episodes",
        "Policy entropy",
        "popplay: return with each partner",
        "popplay: how often each partner is drawn",
    ]
    text = report(tmp_path, write_run(tmp_path / "all")).text
    assert all(title in text for title in titles)
    assert "Held-out mean by checkpoint" not in text
    bare = [{"iteration": 10, "frames": 10, "seed": 0, "episodes": 0}]
    page = report(tmp_path, write_run(tmp_path / "bare", metrics=bare))
    assert not any(title in page.text for title in titles[2:])


def test_report_groups_runs_by_environment_and_tells_equal_methods_apart(tmp_path):
    other = "lbf/8x8-2p-3f-coop"
    folders = [
        write_run(tmp_path / "one"),
        write_run(tmp_path / "elsewhere", env=other),
        write_run(tmp_path / "two"),
        write_run(tmp_path / "alone", method="self-play", partners=()),
    ]
    page = report(tmp_path, *folders, folders[0])
    headings = [tag for tag, _ in page.elements].count("h2")
    assert headings == 3  # two environments and how to read
    first, second = page.text.split(other, 1)
    assert "popplay (one)" in first
    assert "popplay (two)" in first
    assert "self-play" in first
    assert "self-play" not in second
    assert "popplay (" not in second


def test_report_names_what_is_missing_or_doubtful(tmp_path):
    unjudged = write_run(tmp_path / "unjudged", judged=False, metrics=[])
    text = report(tmp_path, unjudged).text
    assert "popplay has not been evaluated: there is no eval.json in unjudged" in text
    assert "popplay has logged no metrics" in text

    longer = [*lines(), {**lines()[-1], "iteration": 90, "frames": 900_000}]
    met = ["closest_food", "sweeper"]
    text = report(tmp_path, write_run(tmp_path / "doubtful", partners=met, metrics=longer, seeds=5)).text
    assert "popplay was evaluated at 384,000 frames; its log goes on to 900,000." in text
    assert "popplay met closest-food in training" in text
    assert "5 training runs were set up, 3 evaluated" in text

    alone = evaluation("self-play", seeds=1)
    folder = write_run(tmp_path / "alone", "self-play", partners=(), judged=alone, seeds=1, metrics=lines(1, ()))
    text = report(tmp_path, folder).text
    assert "self-play did not meet any of the training partners in training" in text
    assert "one training run only" in text
    assert "±" not in text.split("How to read this")[0]

    page = report(tmp_path, write_run(tmp_path / "sound"))
    assert "note" not in [attributes.get("class") for _, attributes in page.elements]


def test_report_is_the_same_for_the_same_runs(tmp_path):
    folder = write_run(tmp_path / "run")
    write_report([folder], tmp_path / "a.html")
    write_report([folder], tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("name", [HOSTILE, "[bold]x[/bold]", "_hidden", "a\x1b[31mb", "字" * 200, "'\" onload=x"])
def test_report_escapes_hostile_names(tmp_path, name):
    payload = evaluation(name)
    payload["groups"]["held-out"] = group([name, "b"], best=name)
    folder = write_run(tmp_path / "run", name, judged=payload, partners=[name], metrics=lines(partners=(name, "b")))
    page = report(tmp_path, folder)
    assert " ".join(name.split()) in page.text
    wide = Console(file=StringIO(), width=3000)
    for table in result_tables([payload]):
        wide.print(table)
    assert isinstance(wide.file, StringIO)
    assert name.replace("\x1b", "") in wide.file.getvalue().replace("\x1b", "")


def test_report_holds_the_recordings_with_their_words(tmp_path):
    folder = write_run(tmp_path / "run")
    (folder / "recordings").mkdir()
    for name, words in (("a", "sweeper in seat 0 <b>"), ("b", "")):
        picture = Image.new("RGB", (8, 8), (0, 114, 178))
        picture.save(folder / "recordings" / f"{name}.gif", comment=words.encode())
    page = report(tmp_path, folder)
    pictures = [attributes for tag, attributes in page.elements if tag == "img"]
    assert [picture["alt"] for picture in pictures] == ["popplay, a: sweeper in seat 0 <b>", "popplay, b"]
    assert "popplay, a: sweeper in seat 0 <b>" in page.text
    data = base64.b64decode(pictures[0]["src"].partition(",")[2])
    assert data == (folder / "recordings" / "a.gif").read_bytes()


def test_report_without_bounds_or_training_group(tmp_path):
    payload = evaluation()
    del payload["groups"]["training"]
    payload["groups"]["held-out"]["bounds"] = {"random": None}
    page = report(tmp_path, write_run(tmp_path / "run", judged=payload))
    assert "Training partners, one by one" not in page.text
    assert "best script" not in [text.strip() for text in page.texts]
    assert "0.944" not in terminal([payload])


def test_metrics_forgive_only_a_cut_last_line(tmp_path):
    folder = write_run(tmp_path / "run")
    path = folder / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"iteration": 40, "fra')
    assert read_run(folder).metrics == tuple(sorted(lines(), key=lambda line: (line["seed"], line["frames"])))
    report(tmp_path, folder)
    path.write_bytes(b'{"iteration": 40, "fra\n' + whole)
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 1 is not JSON"):
        write_report([folder], tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_metrics_written_twice_count_once(tmp_path):
    again = {**lines()[-1], "return": 0.123}
    run = read_run(write_run(tmp_path / "run", metrics=[*lines(), again]))
    assert len(run.metrics) == len(lines())
    frames, values = run.series("return")[2]
    np.testing.assert_array_equal(frames, [256_000, 384_000])
    np.testing.assert_allclose(values, [0.42, 0.123])
    assert [len(values) for _, values in run.series("partner_return", "sweeper")] == [3, 3, 3]


def broken(change) -> dict:
    payload = copy.deepcopy(evaluation())
    change(payload)
    return payload


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.update(format=2), "format 2"),
        (lambda e: e.pop("method"), "method is missing: it must be a JSON string"),
        (lambda e: e.update(episodes="many"), "episodes is 'many': it must be a JSON integer"),
        (lambda e: e.update(groups={}), "groups is empty"),
        (lambda e: e["groups"]["held-out"]["mean"].append(0.5), "held-out: per_seat must be 4 x 2 x seats numbers"),
        (lambda e: e["groups"]["held-out"].update(worst=["a", 1, 2]), "worst must be 3 numbers"),
        (lambda e: e["groups"]["training"].update(per_partner=[[1], [1, 2], [3]]), "per_partner must be 3 x 2 numbers"),
        (lambda e: e["groups"]["training"].update(descriptions=["one"]), "descriptions must be 2 strings"),
        (lambda e: e["groups"]["training"].update(partners=["a", "a"]), "same name"),
        (lambda e: e["groups"].update(training=group(["a"], 2)), "different numbers of training runs"),
        (lambda e: e.update(curve={"frames": [2, 1], "mean": [[1] * 3] * 2}), "frames must increase"),
        (lambda e: e.update(curve={"frames": [1, 2], "mean": [[1] * 2] * 2}), "mean must be 2 x 3 numbers"),
        (lambda e: e.update(curve={"frames": [1, 2], "mean": [[1] * 3] * 2}), "training_return must be 2 x 3 numbers"),
        (lambda e: e.update(modes=[]), r"modes is \[\]: it must be a JSON object"),
        (lambda e: e.update(modes=MODES | {"outcomes": ["a", "a", "b"]}), "modes: outcomes must be different names"),
        (lambda e: e.update(modes=MODES | {"shares": [[1, 0, 0]] * 2}), "modes: shares must be 3 x 3 numbers"),
        (lambda e: e.update(modes=MODES | {"shares": [[0.9, 0.2, 0]] * 3}), "modes: shares must be from 0 to 1"),
        (lambda e: e.update(modes=MODES | {"modes": [["met_up"], [], []]}), "modes: modes must be a list of outcomes"),
        (lambda e: e.update(modes=MODES | {"modes": [[], []]}), "for each of 3 training runs"),
        (lambda e: e.update(modes=MODES | {"modes": [[{}], [], []]}), "modes: modes must be a list of outcomes"),
        (lambda e: e.update(modes=MODES | {"chance": "even"}), "modes: chance must be one number"),
        (lambda e: e.update(modes=MODES | {"population": 2.0}), "modes: population is 2.0: it must be a JSON integer"),
    ],
)
def test_damaged_evaluation_is_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as error:
        parse_judgement(broken(change), "eval.json")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("eval.json")


def test_damaged_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one run folder"):
        write_report([], tmp_path / "x.html")
    with pytest.raises(ValueError, match=r"nowhere is not a run folder: it has no config\.json"):
        write_report([tmp_path / "nowhere"], tmp_path / "x.html")
    folder = write_run(tmp_path / "run")
    (folder / "eval.json").write_text(json.dumps(evaluation("mep")))
    with pytest.raises(ValueError, match=r"eval\.json is of mep on .*, but the run is popplay"):
        write_report([folder], tmp_path / "x.html")
    (folder / "eval.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"eval\.json is a list: it must be a JSON object"):
        write_report([folder], tmp_path / "x.html")
    (folder / "eval.json").unlink()
    (folder / "recordings").mkdir()
    (folder / "recordings" / "x.gif").write_text("no picture")
    with pytest.raises(ValueError, match=r"x\.gif is not a GIF picture"):
        write_report([folder], tmp_path / "x.html")


def test_curve_over_training_gives_best_checkpoint_and_mean_over_training(tmp_path):
    curve = {
        "frames": [0, 100, 400],
        "mean": [[0, 0, 0], [0.8, 0.9, 1.0], [0.6, 0.5, 0.7]],
        "training_return": [[None, None, None], [0.2, 0.4, 0.2], [0.3, 0.1, None]],
    }
    payload = evaluation(curve=curve)
    judgement = parse_judgement(payload)
    # Each run's own pick, by its return in training: not its highest held-out mean.
    assert best_checkpoint(judgement) == t_interval(np.array([0.6, 0.9, 1.0]))
    area = mean_over_training(judgement)
    assert area is not None
    # Trapezia: (100 * 0.45 + 300 * 0.75) / 400 on the average of the three runs.
    assert area.mean == pytest.approx(0.675)
    page = report(tmp_path, write_run(tmp_path / "run", judged=payload))
    for shown in ("Held-out mean by checkpoint", str(best_checkpoint(judgement)), str(area), "does not choose"):
        assert shown in page.text
    printed = terminal([payload, evaluation("self-play")])
    assert str(best_checkpoint(judgement)) in printed
    assert str(area) in printed


def test_a_run_without_finished_training_episodes_has_no_best_checkpoint():
    curve = {"frames": [0, 100], "mean": [[0, 0, 0]] * 2, "training_return": [[None] * 3, [0.1, 0.1, None]]}
    assert best_checkpoint(parse_judgement(evaluation(curve=curve))) is None


def test_chosen_partners_alone_fill_the_headline():
    payload = evaluation(groups={"chosen": group(["sweeper", "follower"], 3, 0)})
    printed = terminal([payload])
    assert str(Interval(*payload["groups"]["chosen"]["mean_interval"])) in printed
    assert "Held-out" not in printed


def test_nothing_is_cut_off_in_a_terminal_of_eighty_columns():
    curve = {"frames": [0, 100], "mean": [[0.5] * 3] * 2, "training_return": [[0.1] * 3] * 2}
    console = Console(file=StringIO(), width=80)
    more: dict[str, Any] = {"curve": curve, "modes": MODES}
    for table in result_tables([evaluation(method, **more) for method in ("self-play", "popplay")]):
        console.print(table)
    assert isinstance(console.file, StringIO)
    printed = console.file.getvalue()
    judgement = parse_judgement(evaluation("popplay", curve=curve))
    shown = [result.mean_interval for result in judgement.groups.values()]
    shown += [best_checkpoint(judgement), mean_over_training(judgement), judgement.groups["held-out"].worst_interval]
    for words in ["self-play", "popplay", "384,000", "met_north", "1.33", *map(str, shown)]:
        assert words in printed, words


def test_labels_tell_methods_apart():
    assert labels(["a", "b"], ["x", "y"]) == ["a", "b"]
    assert labels(["a", "b", "a"], ["x", "y", "z"]) == ["a (x)", "b", "a (z)"]
    assert labels(["a", "a"], ["x", "x"]) == ["a (x) #1", "a (x) #2"]
    assert labels(["a", "a"]) == ["a #1", "a #2"]
