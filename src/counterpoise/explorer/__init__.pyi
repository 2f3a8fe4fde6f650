from counterpoise.explorer.serving import explore_run as explore_run
from counterpoise.explorer.session import Session as Session
from counterpoise.explorer.setting import Setting as Setting
from counterpoise.explorer.source import session_of_model as session_of_model
from counterpoise.explorer.source import session_of_run as session_of_run
from counterpoise.explorer.static_page import write_interactive as write_interactive
from counterpoise.explorer.widget import explore as explore
