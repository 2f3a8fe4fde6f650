from counterpoise.persist.container import UnreadableModel as UnreadableModel
from counterpoise.persist.container import UnstorableModel as UnstorableModel
from counterpoise.persist.file_access import watch_changes as watch_changes
from counterpoise.persist.file_access import write_atomically as write_atomically
from counterpoise.persist.models import dumps as dumps
from counterpoise.persist.models import load as load
from counterpoise.persist.models import loads as loads
from counterpoise.persist.models import save as save
