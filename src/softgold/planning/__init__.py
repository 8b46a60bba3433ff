"""Which vote to buy next, what further votes would change, and when to stop."""

from softgold.planning.allocation import VotePlan, plan_votes
from softgold.planning.crew import Crew, read_crew
from softgold.planning.forecast import Forecast, forecast

__all__ = ["Crew", "Forecast", "VotePlan", "forecast", "plan_votes", "read_crew"]
