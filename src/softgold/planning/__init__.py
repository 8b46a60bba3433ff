"""Which vote to buy next, what further votes would change, and when to stop."""

from softgold.planning.allocation import VotePlan, plan_votes
from softgold.planning.controls import ControlPlan, plan_controls
from softgold.planning.crew import Crew, read_crew
from softgold.planning.forecast_result import Forecast
from softgold.planning.forecasting import forecast
from softgold.planning.rounds import Update, merge_votes, update_run

__all__ = [
    "ControlPlan",
    "Crew",
    "Forecast",
    "Update",
    "VotePlan",
    "forecast",
    "merge_votes",
    "plan_controls",
    "plan_votes",
    "read_crew",
    "update_run",
]
