"""How the documentation site is built: ``make docs``."""

import ast
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes

import counterpoise

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "counterpoise"
author = "the counterpoise developers"
copyright = author  # noqa: A001 - Sphinx asks for this name
release = counterpoise.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "changelog_page",
    "live_explorer",
    "mathml",
]
exclude_patterns = ["_build", "_extensions", "_templates"]
templates_path = ["_templates"]

# Pages are Markdown that also reads well where it lies; of MyST they use little.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_dmath_allow_space = False  # so that prices and prompts are none
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

# The API pages show what is written here: not what scikit-learn's base classes bring along.
autosummary_generate = True
autosummary_imported_members = True
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"  # the docstrings say it, with shapes and ranges
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Examples called plot_* are run, and their figures shown; of those that need what is not here only the text is.
EXAMPLES = HERE.parent / "examples"


def _imported(text: str) -> set[str]:
    """Return the packages that a script imports anywhere."""
    nodes_of = list(ast.walk(ast.parse(text)))
    named = [alias.name for node in nodes_of if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module for node in nodes_of if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in named}


def runs_here(example: Path) -> bool:
    """Return whether all that an example imports is installed, and the data that it loads at hand, or a stand-in."""
    text = example.read_text(encoding="utf-8")
    has_data = "load_dataset(" not in text or "DataNotAvailable" in text or "COUNTERPOISE_DATA" in os.environ
    return has_data and all(find_spec(name) is not None for name in _imported(text))


_run = [re.escape(example.name) for example in sorted(EXAMPLES.glob("plot_*.py")) if runs_here(example)]
sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES),
    "gallery_dirs": "gallery",
    "filename_pattern": rf"/({'|'.join(_run)})$" if _run else r"(?!)",
    "ignore_pattern": r"(__init__|conftest|test_.*)\.py",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": (),  # what a last line returns is no output of a script
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "counterpoise"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "counterpoise"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
_ALONE = ["index", "start", "how_it_works", "what_can_go_wrong", "coming_from", "coming_from_clarify"]
_ALONE += ["coming_from_tuned_threshold", "extending", "changelog"]
html_sidebars = {page: [] for page in _ALONE}  # a sidebar would hold nothing but their name

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _written_elsewhere(_app: Any, _what: str, _name: str, member: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out members of other packages, as ``set_fit_request``, whose texts point into pages that are not here."""
    written_in = getattr(getattr(member, "fget", member), "__module__", None) or "counterpoise"
    return None if skip or written_in.startswith("counterpoise") else True


def _strip_blank_ends(_app: Any, doctree: Any) -> None:
    """Take away the blank line that ends a block of code in Markdown, which doctest needs and a reader does not."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.astext().rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def _to_the_gallery(_app: Any, _page: str, source: list[str]) -> None:
    """Lead links to the scripts of examples, which are right where a page lies, to their pages of the gallery."""
    source[0] = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", r"](/gallery/\1.rst)", source[0])


def setup(app: "Sphinx") -> None:
    """Connect what is above."""
    app.connect("source-read", _to_the_gallery)
    app.connect("doctree-read", _strip_blank_ends)
    app.connect("autodoc-skip-member", _written_elsewhere)
