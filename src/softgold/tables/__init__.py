"""The frozen tables between the stages: votes, expert labels, ratings, scores and soft labels."""
