# SPDX-License-Identifier: Apache-2.0
"""Functions made from the tables of commands and options, which the program has as well."""

import json
import keyword
import os
import re
import tempfile
import warnings

from trainyard import _algorithms, _core, _views


class Warning(UserWarning):
    """What the program writes to standard error, without its "warning: "."""


class Result(dict):
    """The JSON of a command as a dictionary. A list of rows, as `sweep` gives, is under "rows"."""

    def __init__(self, outcome):
        figures = json.loads(outcome.json()) if outcome.has_json else {}
        super().__init__({"rows": figures} if isinstance(figures, list) else figures)
        self._outcome = outcome

    @property
    def text(self):
        """What the program prints."""
        return self._outcome.text

    @property
    def status(self):
        """The exit status of the program: 0, or 1 where the command judged and found fault."""
        return self._outcome.status

    @property
    def log(self):
        """The lines that the program writes to standard error."""
        return self._outcome.log

    def csv(self):
        return self._outcome.csv()

    def rows(self, path=None):
        """The list of dictionaries at a path such as "rows"; without one the first there is."""
        return _views.rows_of(self, path)

    def frame(self, path=None):
        """The same as a pandas.DataFrame."""
        return _views.frame_of(self, path)

    def plot(self, x=None, y=None, path=None):
        """Column y over column x as a matplotlib Figure."""
        return _views.plot_of(self, x, y, path)


def function_name(command):
    """explain_step for "explain step", and import_, as import is a word of Python."""
    return command.replace(" ", "_") + ("_" if keyword.iskeyword(command) else "")


def commands():
    """The rows of all commands, each with those of its arguments and options."""
    return {row["name"]: row for row in _core.commands()}


_ROWS = commands()


def _text(value):
    """A value as the command line has it; lists and mappings are YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _words_of_option(name, value, repeats):
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    if isinstance(value, dict):
        values = [f"{key}={_text(each)}" for key, each in value.items()]
    elif isinstance(value, (list, tuple)):
        values = [_text(each) for each in value]
    else:
        values = [_text(value)]
    if not repeats:
        values = [",".join(values)]
    return [f"--{name}={each}" for each in values]


def _words(command, arguments, options):
    rows = {row["name"]: row for row in _ROWS[command]["options"]} if command in _ROWS else {}
    words = [*command.split(), *(_text(each) for each in arguments)]
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        words += _words_of_option(name, value, rows.get(name, {}).get("repeats", False))
    return words


def call(command, *arguments, progress=None, **options):
    """Runs a command by its name: call("explain step", cluster="dgx-h100", model="llama-3-8b").

    `progress` is called with a line of text now and then. Other threads of Python go on meanwhile,
    and Ctrl-C ends the run. `control` may be a function (docs/guide/python.md).
    """
    if not callable(options.get("control")):
        return _run(command, arguments, options, progress, None)
    control = options["control"]
    name = re.sub(r"\W", "_", getattr(control, "__name__", type(control).__name__))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, f"{name}.yaml")
        with open(file, "w", encoding="utf-8") as out:
            out.write("sources: {}\nalgorithm: callback\n")
        # Whether options have an effect is tried by further runs, which would call it too.
        defaults = {"effects": "off"} if "effects" in _names(command) else {}
        return _run(command, arguments, {**defaults, **options, "control": file}, progress, control)


def _names(command):
    return {row["name"] for row in _ROWS[command]["options"]} if command in _ROWS else set()


def _run(command, arguments, options, progress, control):
    outcome = _core.run(_words(command, arguments, options), progress, control)
    for line in outcome.log:
        warnings.warn(line.removeprefix("warning: "), Warning, stacklevel=4)
    return Result(outcome)


def _takes_workload(row):
    names = {option["name"]: option for option in row["options"]}
    return "workload" in names and not any(option["is_argument"] for option in row["options"])


def _document(row):
    lines = [row["summary"] + ".", ""]
    for option in row["options"]:
        name = option["name"].replace("-", "_")
        lines.append(f"{name}: {option['help'] or 'an argument'}")
    return "\n".join(lines)


def _function(row):
    command = row["name"]
    takes_workload = _takes_workload(row)

    def function(*arguments, progress=None, **options):
        if takes_workload and arguments:
            options["workload"], *arguments = arguments
        return call(command, *arguments, progress=progress, **options)

    function.__name__ = function_name(command)
    function.__qualname__ = function.__name__
    function.__doc__ = _document(row)
    return function


def _sweep(spec, progress=None, **options):
    """Runs a sweep: a file, or what stands in one as a dictionary."""
    if not isinstance(spec, dict):
        return call("sweep", spec, progress=progress, **options)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "sweep.yaml")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(spec, out)  # JSON is YAML.
        return call("sweep", file, progress=progress, **options)


def _collective(made):
    """The function of the command, with `algorithm`, a function of Python, beside its options."""
    def collective(*arguments, algorithm=None, progress=None, **options):
        if algorithm is None:
            return made(*arguments, progress=progress, **options)
        if len(arguments) != 1:
            raise TypeError("collective: expected an operation with an algorithm")
        return _algorithms.run(call, _ROWS, algorithm, *arguments, options, progress)

    collective.__qualname__ = collective.__name__
    collective.__doc__ = f"{made.__doc__}\nalgorithm: a function that yields its messages"
    return collective


def functions():
    """One function for each command, by its command."""
    made = {command: _function(row) for command, row in _ROWS.items()}
    made["collective"] = _collective(made["collective"])
    _sweep.__name__ = _sweep.__qualname__ = "sweep"
    return made | {"sweep": _sweep}


class Cluster:
    """A cluster, by its file or a name that Trainyard ships, with changes.

    Each run reads it anew. The functions of all commands that take a cluster are methods.
    """

    def __init__(self, name_or_file, **options):
        self.options = {"cluster": name_or_file, **options}

    def __repr__(self):
        return "Cluster(" + ", ".join(f"{key}={value!r}"
                                      for key, value in self.options.items()) + ")"


def _method(function):
    def method(self, *arguments, progress=None, **options):
        both = {**self.options, **options}
        # Changes add up, as those of --set do.
        if isinstance(self.options.get("set"), dict) and isinstance(options.get("set"), dict):
            both["set"] = {**self.options["set"], **options["set"]}
        return function(*arguments, progress=progress, **both)

    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


for _command, _made in functions().items():
    if any(option["name"] == "cluster" for option in _ROWS[_command]["options"]):
        setattr(Cluster, _made.__name__, _method(_made))
