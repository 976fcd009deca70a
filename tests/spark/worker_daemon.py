"""What starts the Python workers of the tests' session: it has loaded all that they need before it forks them."""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
from pyspark import worker  # noqa: F401
from pyspark.daemon import manager

import streamdsl.spark.streaming.processor
import streamdsl.spark.worker  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # a worker collects garbage after each task, and would look through all modules
    manager()
