"""Settings of the documentation site.

  pip install -e '.[docs]'
  python -m sphinx -W -b html docs build/site

`-D run_examples=0 -D nb_execution_mode=off` leaves out what takes time: the examples
of the gallery and the notebook are then shown as they are written, without output.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent)]

import oodgat_jax  # noqa: E402, F401  (fails here, with a reason, if it is missing)

project = "oodgat-jax"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "api_pages",
    "command_pages",
    "examples",
]
exclude_patterns = ["extensions", "static", "**.ipynb_checkpoints"]

smartquotes = False  # -- begins a flag
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_output_stderr = "remove"  # notices of libraries, with paths of this machine

autosummary_generate = False  # a page per module, not per name
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 72
python_use_unqualified_type_names = True
highlight_language = "text"  # of blocks that name none: commands
default_role = "literal"  # docstrings set code in single backticks
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "sphinx_book_theme"
html_title = "oodgat-jax"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "home_page_in_toc": True,
    "show_navbar_depth": 1,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
}
html_context = {"default_mode": "auto"}
html_last_updated_fmt = None
html_show_sphinx = False
html_show_copyright = False
