# SPDX-License-Identifier: Apache-2.0
"""Reports of `trainyard collective`: bus bandwidth, algorithms with their crossovers, predictions
beside measurements. The ledger of `trainyard validate` is predictions beside measurements, too."""

from . import style
from .data import BadInput, Table, expected, table_of
from .units import size_name


def title_of(report):
    if not isinstance(report, dict) or "operation" not in report:
        return ""
    return f"{report['operation']}, {report['ranks']} ranks: {report['cluster']}"


def rows_of(report):
    return report if isinstance(report, Table) else table_of(report, "rows")


def lines_of(table, key, by="algorithm"):
    """By algorithm, in the order of the report: sizes and values."""
    table.require("size_bytes", by, key)
    lines = {}
    for index, row in enumerate(table.rows):
        size, value = table.number(index, "size_bytes"), table.number(index, key)
        if size is not None and value is not None:
            sizes, values = lines.setdefault(row[by], ([], []))
            sizes.append(size)
            values.append(value)
    if not lines:
        raise expected("input", f'a row with "{key}"', "none")
    return lines


def column_of(table, key):
    """By size, of the rows that have it."""
    if key not in table.columns:
        return {}
    values = {}
    for index in range(len(table.rows)):
        value = table.number(index, key)
        if value is not None:
            values[table.number(index, "size_bytes")] = value
    return dict(sorted(values.items()))


def draw_bandwidth(report, figure, options):
    """Over size, one line for each algorithm, with measured points, the lower bound and intervals
    where the report has them; time over size if no row has a bandwidth."""
    table = rows_of(report).where(options.where)
    axes = figure.subplots()
    lines = lines_of(table, "busbw_gb_per_s")
    has_bandwidth = any(value > 0 for _, values in lines.values() for value in values)
    if not has_bandwidth:
        lines = lines_of(table, "time_us")
    for index, (algorithm, (sizes, values)) in enumerate(lines.items()):
        axes.plot(sizes, values, label=algorithm, **style.line_style(index, len(sizes)))
    if has_bandwidth:
        times, rates = column_of(table, "time_us"), column_of(table, "busbw_gb_per_s")
        low, high = column_of(table, "time_low_us"), column_of(table, "time_high_us")
        if low and len(times) == len(table.rows):
            least = [rates[size] * times[size] / high[size] for size in low]
            most = [rates[size] * times[size] / low[size] for size in low]
            axes.fill_between(list(low), least, most, color=style.colour(0), alpha=0.15, lw=0,
                              label="nine measured in ten")
        share = column_of(table, "efficiency")
        if share:
            bound = [rates[size] / share[size] for size in share]
            axes.plot(list(share), bound, "k--", linewidth=0.8, label="bound")
        measured = column_of(table, "measured_busbw_gb_per_s")
        if measured:
            axes.plot(list(measured), measured.values(), "kx", label="measured")
    style.size_axis(axes, [size for sizes, _ in lines.values() for size in sizes])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("bus bandwidth (GB/s)" if has_bandwidth else "time (us)")
    style.finish(axes, options.title or title_of(report))


def crossovers(lines):
    """[(size, name)]: from which size on which line is the least, of the sizes that all have."""
    by_size = {name: dict(zip(*line)) for name, line in lines.items()}
    common = set.intersection(*(set(values) for values in by_size.values()))
    changes = []
    for size in sorted(common):
        best = min(by_size, key=lambda name: by_size[name][size])
        if not changes or changes[-1][1] != best:
            changes.append((size, best))
    return changes


def draw_algorithms(report, figure, options):
    """Time over size, both logarithmic; the ground has the colour of the fastest algorithm."""
    table = rows_of(report).where(options.where)
    lines = lines_of(table, "time_us", options.by[0] if options.by else "algorithm")
    if len(lines) < 2:
        raise BadInput("algorithms are compared where there are two or more, found one")
    axes = figure.subplots()
    numbers = {}
    for index, (algorithm, (sizes, times)) in enumerate(lines.items()):
        numbers[algorithm] = index
        axes.plot(sizes, times, label=algorithm, **style.line_style(index, len(sizes)))
    sizes = sorted({size for each, _ in lines.values() for size in each})
    changes = crossovers(lines)
    style.size_axis(axes, sizes)
    style.log_axis(axes, "y", [time for _, times in lines.values() for time in times])
    for (start, name), (end, _) in zip(changes, [*changes[1:], (sizes[-1], "")]):
        axes.axvspan(start, end, color=style.colour(numbers[name]), alpha=0.12, lw=0)
        axes.annotate(f"{name} from {size_name(start)}", (start, 1), xytext=(3, -3),
                      xycoords=("data", "axes fraction"), textcoords="offset points",
                      rotation=90, va="top", fontsize="x-small")
    axes.set_ylabel("time (us)")
    style.finish(axes, options.title or title_of(report), legend=True)
    axes.legend(fontsize="small", loc="lower right")


def draw_measured(report, figure, options):
    """Predicted time with the interval that should hold nine measured times in ten, the measured
    ones, and the error below."""
    if isinstance(report, Table) and "predicted_us" in report.columns:
        draw_ledger(report.where(options.where), figure, options)
        return
    table = rows_of(report).where(options.where)
    predicted, measured = column_of(table, "time_us"), column_of(table, "measured_time_us")
    if not measured:
        raise expected("input", 'rows with "measured_time_us" (--against)', "none")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    low, high = column_of(table, "time_low_us"), column_of(table, "time_high_us")
    if low:
        above.fill_between(list(low), low.values(), high.values(), color=style.colour(0),
                           alpha=0.2, lw=0, label="nine measured in ten")
    above.plot(list(predicted), predicted.values(), label="predicted",
               **style.line_style(0, len(predicted)))
    above.plot(list(measured), measured.values(), "kx", label="measured")
    style.log_axis(above, "y", [*predicted.values(), *measured.values()])
    above.set_ylabel("time (us)")
    errors = {size: 100 * (predicted[size] / time - 1) for size, time in measured.items()}
    below.axhline(0, color="black", linewidth=0.8)
    below.plot(list(errors), errors.values(), "o", markersize=4, color=style.colour(4))
    below.set_ylabel("error (%)")
    style.size_axis(below, list(predicted))
    style.finish(above, options.title or title_of(report))
    style.finish(below)


def draw_ledger(table, figure, options):
    """Every row of the ledger: measured across, predicted up, a bar from low to high."""
    table.require("class", "measured_us", "low_us", "high_us")
    axes = figure.subplots()
    classes = {}
    for index, row in enumerate(table.rows):
        values = [table.number(index, key)
                  for key in ("measured_us", "predicted_us", "low_us", "high_us")]
        if None not in values:
            classes.setdefault(row["class"], []).append(values)
    ends = [min(row[0] for rows in classes.values() for row in rows),
            max(row[0] for rows in classes.values() for row in rows)]
    for index, (name, rows) in enumerate(classes.items()):
        measured, predicted, low, high = zip(*rows)
        axes.vlines(measured, low, high, color=style.colour(index), alpha=0.08, linewidth=1)
        axes.plot(measured, predicted, style.MARKERS[index % len(style.MARKERS)], markersize=2.5,
                  color=style.colour(index), label=name)
    axes.plot(ends, ends, "k-", linewidth=0.8)
    for which in "xy":
        style.log_axis(axes, which, [*ends, *range(1, 20)])
        (axes.set_xlim if which == "x" else axes.set_ylim)(ends[0] / 1.5, ends[1] * 1.5)
    axes.set_xlabel("measured (us)")
    axes.set_ylabel("predicted (us), with its interval")
    style.finish(axes, options.title)
