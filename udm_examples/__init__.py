"""A gallery of user-defined modules: one file each, with a doctest."""

from udm_examples.busiest import Busiest, Busy
from udm_examples.chart_patterns import ChartPattern, DoubleTop, HeadAndShoulders
from udm_examples.distinct_sketch import DistinctSketch
from udm_examples.ewma import Ewma
from udm_examples.followed_by import FollowedBy, Pair
from udm_examples.geofence import Circle, Crossing, Geofence, Polygon, Position
from udm_examples.hysteresis import Alarm, Hysteresis
from udm_examples.linear_trend import LinearTrend, Trend
from udm_examples.median import Median, SlidingMedian
from udm_examples.online_learning import OnlineAnomalies, OnlineRegression, Prediction, Sample, Scored
from udm_examples.quantile import SlidingQuantile
from udm_examples.quantile_sketch import KllQuantile, LogQuantile
from udm_examples.robust_z_score import Anomaly, RobustZScore
from udm_examples.sequence import Match, SequencePattern, Step
from udm_examples.sessionizer import Click, Sessionizer, Visit
from udm_examples.time_weighted_average import IncrementalTimeWeightedAverage, TimeWeightedAverage
from udm_examples.top_k import SlidingTopK, TopK
from udm_examples.vwap import Trade, Vwap

__all__ = [
    "Alarm",
    "Anomaly",
    "Busiest",
    "Busy",
    "ChartPattern",
    "Circle",
    "Click",
    "Crossing",
    "DistinctSketch",
    "DoubleTop",
    "Ewma",
    "FollowedBy",
    "Geofence",
    "HeadAndShoulders",
    "Hysteresis",
    "IncrementalTimeWeightedAverage",
    "KllQuantile",
    "LinearTrend",
    "LogQuantile",
    "Match",
    "Median",
    "OnlineAnomalies",
    "OnlineRegression",
    "Pair",
    "Polygon",
    "Position",
    "Prediction",
    "RobustZScore",
    "Sample",
    "Scored",
    "SequencePattern",
    "Sessionizer",
    "SlidingMedian",
    "SlidingQuantile",
    "SlidingTopK",
    "Step",
    "TimeWeightedAverage",
    "TopK",
    "Trade",
    "Trend",
    "Visit",
    "Vwap",
]
