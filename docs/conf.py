"""Sphinx settings of the documentation site: `make docs` builds docs/ into docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import site_pages  # noqa: E402 (found through the path above)
from docutils import nodes  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.writers.html5 import HTML5Translator  # noqa: E402

from softgold import __version__  # noqa: E402

project = "softgold"
author = "the softgold authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
# Docstrings name objects and columns in single backticks; a name that is an object of the reference becomes a link.
default_role = "py:obj"
smartquotes = False  # --option stays as it is typed
suppress_warnings = ["ref.python"]  # a short name such as `fit` may mean a function or a method: either link will do

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 4

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "GivenLabels")}  # one word, not all that NumPy means by it
autodoc_preserve_defaults = True  # as the code says them
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
autosummary_generate = False

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"softgold {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False  # the search finds every name
html_show_sphinx = False
SIDEBAR = {"color-sidebar-link-text--top-level": "var(--color-foreground-primary)"}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#7a5200", "color-brand-content": "#00639c", **SIDEBAR},
    "dark_css_variables": {"color-brand-primary": "#e0b050", "color-brand-content": "#6cb6e8", **SIDEBAR},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

site_pages.write(HERE)


def complete(app: object, name: str, source: list[str]) -> None:
    """Append to a page what is made from the code and the notebooks."""
    if name == "cli":
        source[0] += "\n" + site_pages.command_reference()
    if name == "gallery":
        source[0] += "\n" + site_pages.gallery_cards()


def escape_bars(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Keep |x| of a formula from being read as a substitution; examples stay as they are."""
    in_example = False
    for at, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[at] = line.replace("|", "\\|")


def skip_routing(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator for metadata routing."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def inline_formula(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula as MathML: it needs neither script nor network."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def formula_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; one that is wider than the screen scrolls."""
    writer.body.append(f'<div class="frame">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula_block, None))
    app.connect("source-read", complete)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-skip-member", skip_routing)
