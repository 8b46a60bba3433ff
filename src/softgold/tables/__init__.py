"""Frozen tables that the stages exchange: votes, expert labels, ratings, scores, soft labels."""
