#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Notebooks of docs/notebooks from top to bottom, and frames of results, by the name of the notebook
or "frames": notebooks_test.py MODULES PROGRAM NAME. MODULES is the folder of the Python module.
Status 77 says that the packages are missing (tools/setup/packages.sh --with-notebooks)."""

import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
FOLDER = TESTS.parent / "docs/notebooks"
SKIPPED = 77
NEEDED = ("nbconvert", "ipykernel", "pandas", "matplotlib", "trainyard")


def fitting_python():
    """A Python with all that is needed, that of the module first; None if there is none."""
    check = ["-c", "import " + ", ".join(NEEDED)]
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, *check], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None


def complaints_of(path):
    """What is wrong with a notebook as it is stored, and with what it shows when it is run."""
    import nbformat
    from nbconvert.preprocessors import CellExecutionError, ExecutePreprocessor

    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    if any(cell.outputs or cell.execution_count for cell in cells):
        yield "has outputs, which are not to be stored"
    try:
        ExecutePreprocessor(timeout=240, kernel_name="python3").preprocess(
            book, {"metadata": {"path": str(path.parent)}})
    except CellExecutionError as error:
        yield f"{error.ename}: {error.evalue}"
        return
    outputs = [output for cell in cells for output in cell.outputs]
    for output in outputs:
        if output.get("name") == "stderr":
            yield "warns: " + output.text
    shown = {kind for output in outputs for kind in output.get("data", {})}
    if not {"text/html", "image/png"} <= shown:
        yield "shows no table or no figure"


def frames(program):
    return subprocess.run([sys.executable, TESTS / "api/python_module.py", program, "0",
                           "Module.test_frames_and_figures"], check=False).returncode


def main(modules, program, name):
    if os.environ.get("PYTHONPATH") != modules:
        os.environ["PYTHONPATH"] = modules
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        # Else the kernel says that it checks nothing.
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        python = fitting_python()
        if python is None:
            print("skipped: no Python has", ", ".join(NEEDED))
            return SKIPPED
        os.execv(python, [python, __file__, modules, program, name])
    if name == "frames":
        return frames(program)
    complaints = list(complaints_of(FOLDER / (name + ".ipynb")))
    for complaint in complaints:
        print(f"{name}.ipynb: {complaint}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
