from counterpoise.explorer.pages import explore as explore
from counterpoise.explorer.pages import explore_run as explore_run
from counterpoise.explorer.pages import session_of_run as session_of_run
from counterpoise.explorer.pages import write_interactive as write_interactive
from counterpoise.explorer.session import Session as Session
from counterpoise.explorer.setting import Setting as Setting
from counterpoise.explorer.source import session_of_model as session_of_model
