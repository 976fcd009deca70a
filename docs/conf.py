"""How Sphinx makes a site of the pages of this project: `make site`, then open build/site/index.html."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

project = "streamdsl"
copyright = "the authors of streamdsl"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton", "tests.site_pages"]

# The sources are the pages as they are in the repository, so that a link means the same here and there.
root_doc = "docs/index"
include_patterns = ["docs/**.md", "notebooks/*.ipynb", "udm_examples/README.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = [".*", "build", "streamdsl", "tests", "benchmarks", "**.egg-info"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of signatures: most are of other packages, or aliases

myst_heading_anchors = 6
nb_execution_mode = "off"  # the outputs are those that the notebooks store; `make notebooks` runs them

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "streamdsl"
html_additional_pages = {"index": "to_the_first_page.html"}
templates_path = ["site"]
html_static_path = ["site"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
