from counterpoise.report.pack import write_pack as write_pack
from counterpoise.report.page import write_report as write_report
