# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/plot."""

import io
import os
import sys

from .data import Table, expected, read_input
from .labels import conditions_of
from .parser import OneLineParser, read_text, run

DEBIAN_PYTHON = "/usr/bin/python3"
FORMS = (".svg", ".png", ".pdf")
KINDS = ("algorithms", "bandwidth", "bars", "heatmap", "lines", "links", "measured", "memory",
         "overview", "rates", "timeline")


def load_matplotlib():
    try:
        import matplotlib
    except ImportError:
        # Debian's package is for Debian's Python, which need not be the first one here.
        if os.path.realpath(sys.executable) != os.path.realpath(DEBIAN_PYTHON):
            if os.access(DEBIAN_PYTHON, os.X_OK):
                os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])
        print("python3 has no matplotlib (Debian: python3-matplotlib)", file=sys.stderr)
        sys.exit(3)
    matplotlib.use("Agg")
    # The same report gives the same file.
    matplotlib.rcParams["svg.hashsalt"] = "trainyard"
    matplotlib.rcParams["svg.fonttype"] = "none"


def parser():
    result = OneLineParser(
        prog="tools/plot", allow_abbrev=False,
        description="Draws what the commands write, read from standard input or INPUT.")
    add = result.add_argument
    add("file", metavar="FILE", nargs="?", help="the picture: .svg, .png or .pdf")
    add("input", metavar="INPUT", nargs="?", help="JSON or CSV; standard input without it")
    add("--check", action="store_true", help="only whether it could draw; status 3 if not")
    add("--kind", choices=KINDS, help="what the input suggests, if missing")
    add("--x", help="column along the horizontal axis")
    add("--y", help="column along the vertical axis")
    add("--value", help="column that gives the colour of a heat map")
    add("--by", default="", help="columns that tell lines or bars apart, separated by commas")
    add("--where", action="append", default=[], metavar="COLUMN=VALUE[,VALUE]",
        help="only such rows; may be given again")
    add("--name", action="append", default=[], metavar="COLUMN[=VALUE]=TEXT",
        help="what a column or a value is called in the legend; may be given again")
    add("--log", default="", choices=("", "x", "y", "xy"), help="logarithmic axes")
    add("--scale", type=float, default=1.0, help="factor of the values")
    add("--tracks", help="of a time line: those with this in their names")
    add("--most", type=int, default=20, help="links that are shown")
    for name in ("title", "x-label", "y-label", "value-label"):
        add(f"--{name}", default="", metavar="TEXT")
    add("--size", default="9x5.5", metavar="WxH", help="in inches")
    return result


def read_options(arguments):
    options = parser().parse_args(arguments)
    options.by = [name for name in options.by.split(",") if name]
    options.where = conditions_of(options.where)
    try:
        width, height = (float(side) for side in options.size.split("x"))
    except ValueError:
        raise expected("--size", "WIDTHxHEIGHT", f'"{options.size}"') from None
    if not (1 <= width <= 40 and 1 <= height <= 40):
        raise expected("--size", "1 to 40 inches", f'"{options.size}"')
    options.size = (width, height)
    if options.file is not None and not options.file.endswith(FORMS):
        raise expected("FILE", "a name that ends in .svg, .png or .pdf", f'"{options.file}"')
    return options


def kind_of(report):
    """What the commands write is told by its keys."""
    if isinstance(report, Table):
        keys = {"rates": "sent_gbit_per_s", "links": "wire_bytes", "memory": "moment",
                "measured": "predicted_us"}
        kind = next((kind for kind, key in keys.items() if key in report.columns), None)
        return kind or kind_of_rows(report.columns) or (
            "lines" if all(report.is_numeric(column) for column in report.columns) else "overview")
    if "traceEvents" in report:
        return "timeline"
    for kind, key in {"links": "links", "bandwidth": "rows"}.items():
        rows = report.get(key)
        columns = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
        if kind == "links" and "utilisation" in columns or kind_of_rows(columns):
            return kind
    return "overview"


def kind_of_rows(columns):
    """Rows of collective over sizes; those of communicators side by side are another matter."""
    is_collective = "size_bytes" in columns and "busbw_gb_per_s" in columns
    return "bandwidth" if is_collective and "group" not in columns else None


def draw(options, text):
    from matplotlib import pyplot

    from . import collectives, overview, runs, sweeps

    report = read_input(text)
    options.kind = options.kind or kind_of(report)
    draws = {"algorithms": collectives.draw_algorithms, "bandwidth": collectives.draw_bandwidth,
             "measured": collectives.draw_measured, "lines": sweeps.draw_lines,
             "bars": sweeps.draw_bars, "heatmap": sweeps.draw_heat_map,
             "timeline": runs.draw_timeline, "memory": runs.draw_memory, "links": runs.draw_links,
             "overview": overview.draw_overview, "rates": runs.draw_rates}
    figure = pyplot.figure(figsize=options.size, layout="constrained")
    draws[options.kind](report, figure, options)
    if options.file.endswith(".png"):
        save_png(figure, options.file)
    else:
        # No date, so that the same report gives the same file.
        key = "Date" if options.file.endswith(".svg") else "CreationDate"
        figure.savefig(options.file, metadata={key: None})


def save_png(figure, file):
    """With a palette, which drawings need no more than: a third of the size."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(colors=128, dither=Image.Dither.NONE).save(file, optimize=True)


def run_plot(arguments):
    options = read_options(arguments)
    load_matplotlib()
    if options.check:
        return 0
    if options.file is None:
        raise expected("arguments", "the name of a picture", "none")
    draw(options, read_text(options.input))
    return 0


def main(arguments):
    return run("tools/plot", lambda: run_plot(arguments))
