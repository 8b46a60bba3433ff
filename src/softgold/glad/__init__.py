"""The signed-difficulty model of votes (after GLAD): two engines, one posterior."""
