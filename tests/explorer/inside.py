"""What a page asks for and is no public name: the one place of the explorer's tests that knows where it is."""

from counterpoise.explorer.conversation import Conversation, Exporter
from counterpoise.explorer.of_run import RunExporter, read_run
from counterpoise.explorer.pages import page_of
from counterpoise.explorer.views import VIEWS, show_view
from counterpoise.runs.decisions import final_estimator
from counterpoise.runs.use import own_data

__all__ = [
    "VIEWS",
    "Conversation",
    "Exporter",
    "RunExporter",
    "final_estimator",
    "own_data",
    "page_of",
    "read_run",
    "show_view",
]
