"""Fraudulent addresses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gallery.entry import Array, Case, Entry
from gallery.trees import Tree, regressor

CALIBRATION, TESTS = 1500, 16
WORDS = """
account amazon apple bank blog book business chase cloud coffee community confirm crypto data
docs download drive dropbox email event facebook files free garden gift github google guide
health help home image info invoice library login map media member microsoft music netflix news
office online page park password pay paypal photo post prize python reset review school search
secure service shop sign software sport store support team travel university update verify video
wallet weather web wiki win world
""".split()  # noqa: SIM905 (a line each would be longer)
