# SPDX-License-Identifier: Apache-2.0
"""Results as pandas frames and matplotlib figures, where these are installed."""


def _is_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def rows_of(result, path):
    if path is None:
        for value in result.values():
            if _is_rows(value):
                return value
        raise KeyError("expected a result with rows, found none")
    value = result
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    if value and not _is_rows(value):
        raise KeyError(f"{path}: expected rows, found another value")
    return value


def frame_of(result, path):
    import pandas

    # A key of a mapping is a column, "plan.tensor"; where nothing is known pandas has NaN.
    frame = pandas.json_normalize(rows_of(result, path))
    return frame.fillna(float("nan")).infer_objects()


def _numbers(rows, name):
    return all(isinstance(row.get(name), (int, float)) and not isinstance(row.get(name), bool)
               for row in rows)


def _axes(rows, x, y):
    """The first column of numbers, and the first column after it that is a time, else a number."""
    names = [name for name in rows[0] if _numbers(rows, name)]
    if x is None and names:
        x = names[0]
    if y is None:
        others = [name for name in names if name != x]
        times = [name for name in others if name.endswith(("_us", "_ms", "_s"))]
        y = (times or others or [None])[0]
    if x is None or y is None:
        raise KeyError("expected two columns of numbers, found fewer; name x and y")
    return x, y


def _spans_decades(values):
    return min(values) > 0 and max(values) >= 100 * min(values)


def plot_of(result, x, y, path):
    from matplotlib.figure import Figure

    rows = rows_of(result, path)
    x, y = _axes(rows, x, y)
    figure = Figure()
    axes = figure.subplots()
    series = {}
    label = "algorithm" if x != "algorithm" and "algorithm" in rows[0] else None
    for row in rows:
        points = series.setdefault(row.get(label) if label else None, ([], []))
        points[0].append(row[x])
        points[1].append(row[y])
    for name, (across, up) in series.items():
        axes.plot(across, up, marker="o", label=name)
    for values, set_scale in ((([row[x] for row in rows]), axes.set_xscale),
                              (([row[y] for row in rows]), axes.set_yscale)):
        if all(isinstance(value, (int, float)) for value in values) and _spans_decades(values):
            set_scale("log")
    axes.set_xlabel(x.replace("_", " "))
    axes.set_ylabel(y.replace("_", " "))
    if len(series) > 1:
        axes.legend()
    return figure
