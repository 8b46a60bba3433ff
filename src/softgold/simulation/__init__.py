"""Simulated studies: crowd votes, expert labels and model scores with a known truth."""

from softgold.simulation.experts import ask_experts, expert_error
from softgold.simulation.presets import CLEANPATRICK_ISSUES
from softgold.simulation.result import Simulation, Truth
from softgold.simulation.scores import model_scores
from softgold.simulation.settings import SETTING_NAMES, SimulationSettings
from softgold.simulation.study import simulate, simulate_cleanpatrick

__all__ = [
    "CLEANPATRICK_ISSUES",
    "SETTING_NAMES",
    "Simulation",
    "SimulationSettings",
    "Truth",
    "ask_experts",
    "expert_error",
    "model_scores",
    "simulate",
    "simulate_cleanpatrick",
]
