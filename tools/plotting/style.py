# SPDX-License-Identifier: Apache-2.0
"""Axes, units and colours. Lines differ in colour (Okabe and Ito, "Color universal design", told
apart with any colour vision), marker and dashes; maps are cividis, which is read in grey as well.
Colours are those of the pages of --report: look.json is built into these."""

from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from .labels import LOOK
from .units import number_name, size_name

COLOURS = LOOK["series"]
MARKERS = "osD^vPX*"
DASHES = ["-", "--", "-.", ":"]
MAP = LinearSegmentedColormap.from_list("map", LOOK["map"])
SHARE = LinearSegmentedColormap.from_list("share", LOOK["share"]["light"])  # From 0 to 1.
MISSING = "#dddddd"


def colour(index):
    return COLOURS[index % len(COLOURS)]


def line_style(index, points):
    """Many points need no markers."""
    round_of = index // len(COLOURS)
    return {
        "color": colour(index),
        "linestyle": DASHES[(index + round_of) % len(DASHES)] if points > 30 else "-",
        "marker": MARKERS[index % len(MARKERS)] if points <= 30 else None,
        "markersize": 4,
        "linewidth": 1.3,
    }


def categories(count):
    return ListedColormap([colour(index) for index in range(count)])


def plain_log(axis):
    """1, 10, 100, 1000, 10k instead of powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: number_name(value)))


def size_axis(axes, sizes):
    """Powers of two, with their units."""
    sizes = sorted(set(sizes))
    if sizes[0] > 0:
        axes.set_xscale("log", base=2)
    step = max(1, -(-len(sizes) // 9))
    axes.set_xticks(sizes[::step], [size_name(size) for size in sizes[::step]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("message size")


def log_axis(axes, which, values):
    """Logarithmic; with a tick at each value if there are few, as for numbers of GPUs."""
    values = sorted(set(values))
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    if which == "x" and len(values) <= 12:
        axis.set_ticks(values, [number_name(value) for value in values])
        axis.set_minor_locator(NullLocator())
    else:
        positive = [value for value in values if value > 0] or [1]
        is_wide = max(positive) / min(positive) > 1e4
        axis.set_major_locator(LogLocator(10, subs=(1,) if is_wide else (1, 2, 5)))
        axis.set_minor_locator(NullLocator())
        plain_log(axis)


def finish(axes, title="", legend=True):
    axes.grid(alpha=0.3)
    if title:
        axes.set_title(title, fontsize="medium")
    handles, labels = axes.get_legend_handles_labels()
    if legend and labels:
        axes.legend(handles, labels, fontsize="small", ncols=1 + len(labels) // 13)


def remark(axes, text):
    """What is not drawn is said in the picture."""
    axes.annotate(text, (0.99, 0.01), xycoords="figure fraction", ha="right", fontsize="x-small")
