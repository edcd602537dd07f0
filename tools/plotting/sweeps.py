# SPDX-License-Identifier: Apache-2.0
"""Tables of `trainyard sweep`, or any CSV: lines, bars and heat maps of columns that are named."""

from matplotlib.patches import Patch

from . import style
from .data import expected, quoted, text_of
from .labels import in_order, label_of, named, words
from .overview import table_of_any
from .units import number_name, size_name


def table_from(report, options):
    return table_of_any(report).where(options.where)


def series_of(table, options):
    """{label: {x: y}}, and how many rows have no y."""
    table.require(options.x, options.y, *options.by)
    names, series, missing = named(options.name), {}, 0
    for index, row in enumerate(table.rows):
        value = table.number(index, options.y)
        points = series.setdefault(label_of(row, options.by, names), {})
        if value is None:
            missing += 1
            continue
        key = text_of(row[options.x])
        if key in points:
            raise expected(table.places[index], f'one row for "{options.x}" {key} of each line '
                           "(--by, --where)", "two")
        points[key] = value * options.scale
    return series, missing


def set_labels(axes, options, x, y):
    axes.set_xlabel(options.x_label or words(x))
    axes.set_ylabel(options.y_label or words(y))


def draw_lines(report, figure, options):
    table = table_from(report, options)
    if options.x is None and options.y is None:
        draw_columns(table, figure, options)
        return
    require_options(options, "x", "y")
    series, missing = series_of(table, options)
    axes = figure.subplots()
    is_numeric = table.is_numeric(options.x)
    order = in_order(key for points in series.values() for key in points)
    for index, (label, points) in enumerate(series.items()):
        keys = [key for key in order if key in points]
        xs = [float(key) if is_numeric else order.index(key) for key in keys]
        axes.plot(xs, [points[key] for key in keys], label=label or None,
                  **style.line_style(index, len(xs)))
    set_labels(axes, options, options.x, options.y)
    values = [value for points in series.values() for value in points.values()]
    if not is_numeric:
        axes.set_xticks(range(len(order)), order)
    elif options.x == "size_bytes":
        style.size_axis(axes, [float(key) for key in order])
    elif "x" in options.log:
        style.log_axis(axes, "x", [float(key) for key in order])
    elif len(order) <= 12:
        axes.set_xticks([float(key) for key in order])
    if "y" in options.log:
        style.log_axis(axes, "y", values)
    else:
        axes.set_ylim(bottom=min(0, *values) if values else 0)
    style.finish(axes, options.title)
    if missing:
        style.remark(axes, f"not drawn: {missing} rows without a value")


def draw_columns(table, figure, options):
    """A CSV of which nothing is said: the first column is x, the others are lines."""
    axes = figure.subplots()
    first, *others = table.columns
    indices = range(len(table.rows))
    xs = [table.number(index, first) for index in indices]
    for column, name in enumerate(others):
        marked = {"marker": "."} if len(xs) < 30 else {}
        axes.plot(xs, [table.number(index, name) for index in indices], linewidth=1,
                  color=style.colour(column), label=words(name), **marked)
    if "x" in options.log or table.names.get("x") == "log":
        axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel(options.x_label or words(first))
    axes.set_ylabel(options.y_label or table.names.get("y", ""))
    style.finish(axes, options.title or table.names.get("title", ""))


def draw_bars(report, figure, options):
    """One group of bars for each x, one bar in it for each line."""
    table = table_from(report, options)
    require_options(options, "x", "y")
    series, missing = series_of(table, options)
    axes = figure.subplots()
    order = in_order(key for points in series.values() for key in points)
    width = 0.8 / len(series)
    for index, (label, points) in enumerate(series.items()):
        keys = [key for key in order if key in points]
        xs = [order.index(key) + (index - (len(series) - 1) / 2) * width for key in keys]
        drawn = axes.bar(xs, [points[key] for key in keys], width, label=label or None,
                         color=style.colour(index), edgecolor="white",
                         hatch=["", "//", "..", "xx"][index % 4])
        axes.bar_label(drawn, [number_name(points[key]) for key in keys], fontsize="x-small")
    names = named(options.name)
    axes.set_xticks(range(len(order)), [names.get(f"{options.x}={key}", key) for key in order])
    set_labels(axes, options, options.x, options.y)
    if "y" in options.log:
        style.log_axis(axes, "y", range(20))
    style.finish(axes, options.title)
    if missing:
        style.remark(axes, f"not drawn: {missing} rows without a value")


def draw_heat_map(report, figure, options):
    """Numbers by colour, or words (an algorithm, say) by a colour each. What has no value is grey."""
    table = table_from(report, options)
    require_options(options, "x", "y", "value")
    table.require(options.x, options.y, options.value)
    xs = in_order(text_of(row[options.x]) for row in table.rows)
    ys = in_order(text_of(row[options.y]) for row in table.rows)
    names = None if table.is_numeric(options.value) else in_order(
        text_of(row[options.value]) for row in table.rows if row[options.value] not in (None, ""))
    cells = [[float("nan")] * len(xs) for _ in ys]
    texts = [[""] * len(xs) for _ in ys]
    filled = set()
    for index, row in enumerate(table.rows):
        column, line = xs.index(text_of(row[options.x])), ys.index(text_of(row[options.y]))
        if (column, line) in filled:
            raise expected(table.places[index], "one row for each x and y (--where)", "two")
        filled.add((column, line))
        if names is not None and row[options.value] not in (None, ""):
            cells[line][column] = names.index(text_of(row[options.value]))
        elif names is None and table.number(index, options.value) is not None:
            cells[line][column] = table.number(index, options.value) * options.scale
            texts[line][column] = number_name(cells[line][column])
    axes = figure.subplots()
    axes.set_facecolor(style.MISSING)
    draw_cells(figure, axes, cells, texts, names, options)
    axes.set_xticks(range(len(xs)), axis_names(options.x, xs), rotation=45 if len(xs) > 9 else 0)
    axes.set_yticks(range(len(ys)), axis_names(options.y, ys))
    set_labels(axes, options, options.x, options.y)
    axes.set_title(options.title, fontsize="medium")


def axis_names(column, keys):
    return [size_name(float(key)) for key in keys] if column == "size_bytes" else keys


def draw_cells(figure, axes, cells, texts, names, options):
    if names is not None:
        axes.imshow(cells, aspect="auto", origin="lower", cmap=style.categories(len(names)),
                    vmin=-0.5, vmax=len(names) - 0.5)
        patches = [Patch(color=style.colour(index), label=name) for index, name in enumerate(names)]
        axes.legend(handles=patches, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))
        return
    image = axes.imshow(cells, aspect="auto", origin="lower", cmap=style.MAP)
    figure.colorbar(image, label=options.value_label or words(options.value))
    middle = sum(image.get_clim()) / 2
    if sum(len(line) for line in texts) <= 200:
        for line, row in enumerate(texts):
            for column, text in enumerate(row):
                axes.text(column, line, text, ha="center", va="center", fontsize="x-small",
                          color="black" if cells[line][column] > middle else "white")


def require_options(options, *names):
    missing = [f"--{name}" for name in names if getattr(options, name) is None]
    if missing:
        raise expected("options", f"{' and '.join(missing)} for this kind", quoted([options.kind]))
