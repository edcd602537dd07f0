# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site of docs/: Markdown as it is, with the anchors of headings that code
hosts make, and the navigation from the tables of docs/README.md. Sphinx with MyST-Parser reads
CommonMark, as code hosts do, where the Markdown of MkDocs parses lists and their blocks otherwise.
"""

import json
import pathlib
import re

from pygments.lexer import RegexLexer
from pygments.lexers.special import TextLexer
from pygments.token import Generic, Text

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP = "docs/README"

project = "Trainyard"
html_title = "Trainyard " + re.search(
    r"project\(trainyard VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
extensions = ["myst_parser"]
root_doc = MAP
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
include_patterns = ["*.md", "docs/**.md", "docs/notebooks/*.ipynb", "benchmarks/README.md",
                    "validation/README.md", "tools/boxing/cable/README.md"]
# These are large and have no page; Sphinx would walk through them.
exclude_patterns = [".*", "build", "configs", "src", "tests"]
myst_heading_anchors = 6
html_theme = "furo"
highlight_language = "none"
smartquotes = False
html_js_files = [(None, {"body": (ROOT / "tools/site/theme.js").read_text()})]
html_show_sphinx = html_show_copyright = html_copy_source = html_use_index = False


class Console(RegexLexer):
    """Commands of an example in bold, what they print as it is."""

    tokens = {"root": [(r"\$ (.*\\\n)*.*\n", Generic.Strong), (r".*\n", Text)]}


def headings_and_links(text):
    """(heading, [(title, page)]) of each heading of the map; a page counts where it is first."""
    seen = set()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        links = [link for link in re.findall(r"\[([^]]+)\]\(([^)#:]+)\.(?:md|ipynb)\)", rest)
                 if link[1] not in seen and not seen.add(link[1])]
        if links:
            yield heading, links


def as_markdown(notebook):
    """The cells of a notebook, which is stored without what they show."""
    return "\n\n".join(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
                       for cell in notebook["cells"] for text in ["".join(cell["source"])])


def prepare(app, name, source):
    if app.env.doc2path(name).endswith(".ipynb"):
        source[0] = as_markdown(json.loads(source[0]))
    if name != MAP:
        return
    for heading, links in headings_and_links(source[0]):
        entries = "\n".join(f"{title} <{page}>" for title, page in links)
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{entries}\n```\n"


def setup(app):
    app.add_lexer("console", Console)
    app.add_lexer("rooms", TextLexer)
    app.connect("source-read", prepare)
