from xml.etree import ElementTree

import matplotlib.figure
import numpy as np

from jaxscope.evaluation.intervals import t_interval
from jaxscope.runs import plots


def test_mean_curve_is_over_all_runs_or_none():
    first = (np.array([1.0, 2.0, 3.0]), np.array([1.0, np.nan, 3.0]))
    second = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 3.0, 5.0, 6.0]))
    frames, mean = plots.mean_curve([first, second])
    np.testing.assert_array_equal(frames, [1, 3])
    np.testing.assert_array_equal(mean, [2, 4])


def lines_of(figure: matplotlib.figure.Figure) -> list[np.ndarray]:
    return [np.asarray(line.get_xydata()) for line in figure.axes[0].get_lines()]


def test_curve_figure_draws_every_run_and_their_mean():
    frames = np.arange(10.0)
    runs = [(frames, frames), (frames, 3 * frames)]
    drawn = lines_of(plots.curve_figure([plots.Curve("a", runs)], title="t", ylabel="y"))
    assert [line[4, 1] for line in drawn] == [4, 12, 8]
    drawn = lines_of(plots.curve_figure([plots.Curve("a", runs, show_runs=False)], title="t", ylabel="y"))
    assert [line[4, 1] for line in drawn] == [8]
    long = np.arange(4_001.0)
    (drawn,) = lines_of(plots.curve_figure([plots.Curve("a", [(long, 2 * long)])], title="t", ylabel="y"))
    assert len(drawn) <= 400
    np.testing.assert_allclose(drawn[:, 1], 2 * drawn[:, 0])
    assert drawn[-1, 0] > 3_990


def test_dots_figure_draws_every_run_the_interval_and_the_bounds():
    values = [np.array([1.0, 2.0, 3.0]), np.array([])]
    series = [plots.Dots("a", values, [t_interval(values[0]), None])]
    figure = plots.dots_figure(["x", "y"], series, [plots.Marks("best", [4.0, float("nan")])], title="t", xlabel="r")
    drawn = [line[:, 0].tolist() for line in lines_of(figure)]
    interval = t_interval(values[0])
    for expected in ([1, 2, 3], [interval.low, interval.high], [2, 2], [4, 4]):
        assert expected in drawn


def test_plots_are_elements_of_a_page_with_the_same_bytes_for_the_same_data():
    frames = np.arange(10.0)
    curves = [plots.Curve("_a <b> $x$", [(frames, frames)]), plots.Curve("z" * 90, [(frames, -frames)])]
    svg = plots.curve_svg(curves, title="a & b", ylabel="y")
    assert svg == plots.curve_svg(curves, title="a & b", ylabel="y")
    assert svg != plots.curve_svg(curves[:1], title="a & b", ylabel="y")
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag in ("text", "title")]
    assert texts.count("a & b") == 2
    assert "_a <b> $x$" in texts
    assert "z" * 35 + "…" in texts
    # Text and axes take the page's colours, in the light and in the dark.
    assert "currentColor" in svg
    assert not any(stand_in in svg for stand_in in ("#010203", "#040506", "DejaVu", "#000000", "http"))


def test_compact_counts():
    assert [plots.compact(x) for x in (0, 950, 12_800, 1_500_000, 2e9)] == ["0", "950", "12.8k", "1.5M", "2G"]
