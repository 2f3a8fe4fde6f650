from counterpoise.boosting.adaboost import AdaBoostClassifier as AdaBoostClassifier
from counterpoise.boosting.adalpboost import AdaLPBoostClassifier as AdaLPBoostClassifier
from counterpoise.boosting.dro import DROBoostClassifier as DROBoostClassifier
from counterpoise.boosting.ebboost import EBBoostClassifier as EBBoostClassifier
from counterpoise.boosting.lpboost import LPBoostClassifier as LPBoostClassifier
from counterpoise.boosting.margin_boost import RLPBoostClassifier as RLPBoostClassifier
from counterpoise.boosting.margin_boost import RQPBoostClassifier as RQPBoostClassifier
from counterpoise.boosting.vadaboost import VadaBoostClassifier as VadaBoostClassifier
from counterpoise.constrained import ConstrainedClassifier as ConstrainedClassifier
from counterpoise.displays import CVaRCurveDisplay as CVaRCurveDisplay
from counterpoise.displays import RateDisplay as RateDisplay
from counterpoise.displays import TradeoffDisplay as TradeoffDisplay
from counterpoise.goals.audit import certify as certify
from counterpoise.mixtures.mixture import MixtureClassifier as MixtureClassifier
from counterpoise.mixtures.tradeoff import tradeoff as tradeoff
from counterpoise.persist import load as load
from counterpoise.persist import save as save

__version__: str
