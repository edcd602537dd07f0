#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site of docs/ (tools/site): site_test.py links|pages. Status 77 says that the packages that
make it are missing."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77

# A site with one mistake of each kind, and links that are none.
MISTAKES = {
    "index.html": '<a href="sub/a.html">a</a> <a href="https://example.org/b">b</a>',
    "sub/a.html": '<h1 id="here">a</h1> <a href="#here">up</a> <a href="../index.html#top">i</a> '
                  '<a href="b.html">b</a> <a href="#gone">gone</a> <a href="../c.html">c</a> '
                  '<script src="https://example.org/s.js"></script> <img src="data:image/png,">',
    "sub/b.html": '<a href="d%20d.html#here">d</a>',
    "sub/d d.html": '<p id="here">',
}
COMPLAINTS = [
    "sub/a.html: #gone has no such anchor",
    "sub/a.html: ../c.html leads nowhere",
    "sub/a.html: https://example.org/s.js is loaded from a network",
    "sub/d d.html: no way leads to it",
]


def checked(folder):
    return subprocess.run([ROOT / "tools/site/links", folder], capture_output=True, text=True,
                          check=False)


def test_links():
    """Dead links and anchors, what needs a network and lost pages are named, one line each."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MISTAKES.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        result = checked(folder)
        assert result.returncode == 1, result
        assert result.stderr.splitlines() == COMPLAINTS, result.stderr
        assert checked(pathlib.Path(folder) / "sub").stderr == "index.html: is missing\n"


def require_theme_button(page):
    """A click turns a light page dark, where there is a browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium: the button of the theme is not tried")
        return
    clicked = page.with_name("clicked.html")
    clicked.write_text(page.read_text() +
                       "<script>document.querySelector('.theme-toggle').click()</script>")
    with tempfile.TemporaryDirectory() as profile:
        for path, theme in ((page, "light"), (clicked, "dark")):
            made = subprocess.run(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                 f"--user-data-dir={profile}", path.as_uri()],
                capture_output=True, text=True, check=True).stdout
            assert f'<body data-theme="{theme}"' in made, (path, theme)
            assert 'class="no-js"' not in made


def test_pages():
    """The site is made without a warning, has every page of docs and no dead link."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([ROOT / "tools/site/build", folder], capture_output=True, text=True,
                                check=False)
        if result.returncode == 2:
            print("skipped:", result.stderr, end="")
            return SKIPPED
        assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result
        for page in (ROOT / "docs").rglob("*.md"):
            made = pathlib.Path(folder) / page.relative_to(ROOT).with_suffix(".html")
            assert made.is_file(), made
        index = (pathlib.Path(folder) / "searchindex.js").read_text()
        assert "docs/guide/questions" in index
        require_theme_button(pathlib.Path(folder) / "docs/README.html")
    return 0


if __name__ == "__main__":
    sys.exit({"links": test_links, "pages": test_pages}[sys.argv[1]]())
