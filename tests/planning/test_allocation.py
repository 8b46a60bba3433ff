"""Which items get the next votes, and who gives them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import softgold
from softgold.errors import InputError, UsageError
from softgold.models.base import Fit
from softgold.models.crowd.posterior import CrowdPosterior
from softgold.planning import Crew, allocation, assignment, plan_votes, read_crew
from softgold.planning.allocation import ANNOTATORS_SUGGESTED, PLAN_COLUMNS, allocate
from softgold.planning.assignment import NEWCOMER_VOTES, NOBODY, Voters, _Desk, _fill, _make_room
from softgold.planning.crew import PACE
from softgold.planning.outcomes import Outlook
from softgold.tables.study import anonymous_votes


def outlook_of(values: list[list[float]]) -> Outlook:
    brier = 1 - np.cumsum(np.column_stack([np.zeros(len(values)), values]), axis=1)
    return Outlook(brier, brier)


def test_every_vote_goes_where_it_is_worth_most() -> None:
    outlook = outlook_of([[0.10, 0.04], [0.06, 0.05], [0.03, 0.01]])
    for budget, expected in ((1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 2, 0]), (4, [2, 2, 0]), (6, [2, 2, 2])):
        assert allocate(outlook, budget, np.full(3, 2)).tolist() == expected


def test_a_second_vote_never_counts_more_than_the_first() -> None:
    assert allocate(outlook_of([[0.01, 0.50], [0.02, 0.02]]), 2, np.full(2, 2)).tolist() == [0, 2]


def test_some_items_at_a_time_get_the_same_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.sort(np.random.default_rng(0).integers(1, 9, size=(50, 3)) / 100)[:, ::-1]  # many are equal
    outlook, limit = outlook_of(values.tolist()), np.arange(50) % 4
    whole = [allocate(outlook, budget, limit).tolist() for budget in (1, 10, 37, 60)]
    monkeypatch.setattr(allocation, "ITEMS_AT_ONCE", 7)
    assert [allocate(outlook, budget, limit).tolist() for budget in (1, 10, 37, 60)] == whole
    assert [sum(votes) for votes in whole] == [1, 10, 37, 60]


def test_limits_hold() -> None:
    outlook = outlook_of([[0.10, 0.09], [0.06, 0.05]])
    assert allocate(outlook, 2, np.array([1, 2])).tolist() == [1, 1]


def test_a_plan_spends_the_budget_and_lowers_the_error(fitted: Fit) -> None:
    plan = plan_votes(fitted, 100)
    frame = plan.to_frame()
    assert tuple(frame.columns) == (*PLAN_COLUMNS, ANNOTATORS_SUGGESTED)
    assert frame["votes_suggested"].sum() == plan.budget == 100
    assert frame["votes_suggested"].between(1, 3).all()
    assert frame["priority"].is_monotonic_decreasing
    assert (frame["expected_error_after"] <= frame["expected_error_before"] + 1e-12).all()
    labels = fitted.posterior.soft_labels().to_frame().set_index("item").loc[frame["item"]]
    assert frame["p"].to_numpy() == pytest.approx(labels["p"].to_numpy())
    assert frame["expected_error_before"].to_numpy() == pytest.approx(labels["uncertainty"].to_numpy())
    assert frame["n_votes"].tolist() == labels["n_votes"].tolist()
    total = (frame["expected_error_before"] - frame["expected_error_after"]).sum() / plan.n_items
    assert plan.table_error_before - plan.table_error_after == pytest.approx(total)
    assert "100 votes on" in str(plan)


def test_the_best_single_vote_is_the_one_of_highest_priority(fitted: Fit) -> None:
    first = plan_votes(fitted, 1, max_per_item=1)
    everything = plan_votes(fitted, 300, max_per_item=1)
    assert first.item_ids[0] == everything.item_ids[0]
    assert everything.priority[0] == everything.priority.max()


def test_row_order_and_ids_do_not_matter(fitted: Fit) -> None:
    frame = fitted.votes.to_frame()
    shuffled = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    shuffled["item"] = "x" + shuffled["item"]
    other = plan_votes(softgold.fit(shuffled, engine="coordinate"), 60).to_frame().set_index("item")
    same = plan_votes(fitted, 60).to_frame().set_index("item")
    common = [item for item in same.index if f"x{item}" in other.index]
    assert len(common) >= len(same) - 2  # items that are worth the same may change places
    assert other.loc[[f"x{item}" for item in common], "priority"].to_numpy() == pytest.approx(
        same.loc[common, "priority"].to_numpy(), rel=1e-2
    )


@pytest.mark.parametrize(
    ("budget", "words"), [(0, "budget must be"), (-5, "budget must be"), (10**6, "above what is left")]
)
def test_a_budget_that_cannot_be_spent_is_said(fitted: Fit, budget: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan_votes(fitted, budget)


def test_a_finished_run_has_nothing_to_buy() -> None:
    rows = [(f"i{item}", f"a{who}", item % 2) for item in range(40) for who in range(60)]
    fit = softgold.fit(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), engine="coordinate")
    with pytest.raises(UsageError, match="no item is open: one more vote"):
        plan_votes(fit, 5)
    with pytest.raises(UsageError, match="no item is open: everybody who is free"):
        plan_votes(fit, 5, annotators=Crew(fit.votes.annotator_ids, np.full(60, 9)))


# --- people


def crew_of(fit: Fit, *, capacity: int, newcomers: int = 0) -> Crew:
    ids = [*fit.votes.annotator_ids, *(f"new{number}" for number in range(newcomers))]
    return Crew(pd.Index(ids, dtype="str"), np.full(len(ids), capacity))


def test_nobody_votes_twice_on_an_item_or_beyond_capacity(fitted: Fit) -> None:
    plan = plan_votes(fitted, 200, annotators=crew_of(fitted, capacity=10, newcomers=3), explore=0.2)
    rows = plan.to_votes()
    assert len(rows) == plan.budget == 200
    assert not rows.duplicated(["item", "annotator"]).any()
    before = set(zip(*(fitted.votes.to_frame()[name] for name in ("item", "annotator")), strict=True))
    assert not before & set(zip(rows["item"], rows["annotator"], strict=True))
    assert rows["annotator"].value_counts().max() <= 10
    assert (rows.groupby("item").size() == rows.groupby("item")["votes_suggested"].first()).all()


def test_the_able_go_where_it_matters(fitted: Fit) -> None:
    plan = plan_votes(fitted, 100, annotators=crew_of(fitted, capacity=20), explore=0.0)
    ability = fitted.posterior.annotators().set_index("annotator")["ability_mean"].abs()
    rows = plan.to_votes()
    chosen = ability.loc[rows["annotator"]].to_numpy()
    assert chosen.mean() > ability.mean()
    assert chosen[:30].mean() > chosen[-30:].mean()


def test_a_share_goes_to_those_with_fewest_votes(fitted: Fit) -> None:
    crew = crew_of(fitted, capacity=50, newcomers=4)
    known = fitted.posterior.annotators().set_index("annotator")["n_votes"]
    rows = plan_votes(fitted, 100, annotators=crew, explore=0.2).to_votes()
    assert rows["explores"].sum() == 20
    given = rows.loc[rows["explores"], "annotator"].value_counts()
    assert {f"new{number}" for number in range(4)} <= set(given.index)
    after = given.add(known.reindex(given.index, fill_value=0))
    assert after.max() <= NEWCOMER_VOTES
    assert after.max() - after.min() <= 1  # whoever has fewest votes is next
    assert not plan_votes(fitted, 100, annotators=crew, explore=0.0).to_votes()["explores"].any()


def desk_of(voters: list[list[int]], votes_wanted: list[int], left: list[int]) -> _Desk:
    members = np.array([one for some in voters for one in some], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(some) for some in voters])])
    return _Desk(Voters(members, starts), np.array(votes_wanted), np.array(left))


def test_a_tight_crew_is_used_to_the_last_vote() -> None:
    """The ablest is at the first item when the second, on which only they can vote, comes up: they change places."""
    desk = desk_of([[], [1]], [1, 1], left=[1, 1])
    _fill(desk, [0, 1])
    assert desk.chosen.tolist() == [0, NOBODY]
    _make_room(desk, [0, 1])
    assert desk.chosen.tolist() == [1, 0]
    assert desk.left == [0, 0]


def test_a_plan_makes_room_too() -> None:
    """The ablest could vote everywhere, the other only on half: both give all they can."""
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    voters = {"able": (40, 80, 0.02), "noisy": (0, 20, 0.3), "third": (0, 80, 0.2), "fourth": (0, 80, 0.2)}
    rows = [
        (f"i{item}", name, int(truth[item] ^ (rng.random() < wrong)))
        for name, (first, end, wrong) in voters.items()
        for item in range(first, end)
    ]
    fit = softgold.fit(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), engine="coordinate")
    crew = Crew(pd.Index(["able", "noisy"], dtype="str"), np.array([20, 20]))
    people = plan_votes(fit, 40, annotators=crew, explore=0.0, max_per_item=1).to_votes()
    places = people["item"].str[1:].astype(int)
    assert len(people) == 40
    assert (places[people["annotator"] == "able"] < 20).sum() == (places < 20).sum() > 0


def test_a_later_vote_makes_room_for_an_earlier_one() -> None:
    """Member 0 gives the only vote they have to the second item because the first is closed to everybody else."""
    desk = desk_of([[1], []], [1, 1], left=[0, 1])
    desk.left[0] = 1
    desk.give(1, 0)
    _make_room(desk, [0, 1])
    assert desk.chosen.tolist() == [0, 1]


def test_a_vote_that_nobody_can_give_is_left_out() -> None:
    desk = desk_of([[], [0]], [1, 1], left=[2, 0])
    _fill(desk, [0, 1])
    _make_room(desk, [0, 1])
    assert desk.chosen.tolist() == [0, NOBODY]


def test_several_votes_on_an_item_come_from_several_people() -> None:
    desk = desk_of([[2], [0, 1]], [2, 3], left=[9, 9, 9, 9])
    _fill(desk, [0, 1, 2, 3])
    assert desk.chosen.tolist() == [0, 1, 2, 3, NOBODY]


def test_people_who_are_done_cost_nothing() -> None:
    """The ablest has voted on every item, the others give one vote each: everybody is asked a few times at most."""
    n = 3000
    desk, asked = desk_of([[0]] * n, [1] * n, left=[1] * (n + 1)), []
    can = desk.can
    desk.can = lambda member, slot: asked.append(member) or can(member, slot)  # type: ignore[method-assign,func-returns-value]
    _fill(desk, list(range(n + 1)))
    assert sorted(desk.chosen.tolist()) == list(range(1, n + 1))
    assert len(asked) < n * np.log2(n) * 10


def test_without_a_list_the_annotators_of_the_table_are_asked(fitted: Fit) -> None:
    plan = plan_votes(fitted, 60)
    assert plan.assignment is not None
    frame = plan.to_frame()
    asked = frame[ANNOTATORS_SUGGESTED].str.split("; ")
    assert (asked.map(len) == frame["votes_suggested"]).all()
    pairs = frame.assign(annotator=asked).explode("annotator")[["item", "annotator"]]
    assert not pairs.duplicated().any()
    assert pairs.merge(fitted.votes.to_frame(), on=["item", "annotator"]).empty
    ability = fitted.posterior.annotators().set_index("annotator")["ability_mean"].abs()
    assert ability.loc[pairs["annotator"]].mean() > ability.mean()
    open_to_all = plan_votes(fitted, 60, with_people=False)
    assert open_to_all.assignment is None
    assert open_to_all.to_votes().empty
    assert open_to_all.to_frame().equals(frame.drop(columns=ANNOTATORS_SUGGESTED))


def test_how_many_are_asked_is_said_in_plain_words(fitted: Fit) -> None:
    assert " by 1 annotator with up to 1 vote each: " in str(plan_votes(fitted, 1))
    assert " annotators with up to " in str(plan_votes(fitted, 60))


def test_of_very_many_people_fewer_items_are_looked_at(fitted: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plan_votes(fitted, 60)
    monkeypatch.setattr(assignment, "MEMBERS_AT_ONCE", 7)
    assert plan_votes(fitted, 60).to_frame().equals(whole.to_frame())
    monkeypatch.setattr(assignment, "SAMPLED_PAIRS", 1)
    some = plan_votes(fitted, 60)
    assert some.assignment is not None
    columns = list(PLAN_COLUMNS)
    assert some.to_frame()[columns].equals(whole.to_frame()[columns])
    ability = fitted.posterior.annotators().set_index("annotator")["ability_mean"].abs()
    assert ability.loc[some.assignment.annotators].mean() > ability.mean()


def test_strangers_cannot_be_asked(fitted: Fit) -> None:
    with pytest.warns(softgold.errors.DataWarning, match="a single annotator"):
        fit = softgold.fit(anonymous_votes(fitted.votes), engine="coordinate")
    plan = plan_votes(fit, 60)
    assert plan.assignment is None
    assert tuple(plan.to_frame().columns) == PLAN_COLUMNS


def test_nobody_is_asked_beyond_their_pace_while_others_can(fitted: Fit) -> None:
    posterior = fitted.posterior
    assert isinstance(posterior, CrowdPosterior)
    plan = plan_votes(fitted, 100, explore=0.0)
    assert plan.assignment is not None
    asked = plan.assignment.annotators.value_counts().reindex(posterior.annotator_ids, fill_value=0).to_numpy()
    share = posterior.annotator_counts / posterior.annotator_counts.sum()
    pace = np.ceil(PACE * 100 * share)
    assert (asked <= pace).all()
    assert (asked == pace).any()


def test_beyond_their_pace_they_are_asked_where_nobody_else_is_left() -> None:
    """Two of three have voted on every item: all further votes are for the third, who gave the fewest."""
    rows = [(f"i{item}", f"a{who}", (item + (item + who) % 5 // 4) % 2) for item in range(60) for who in range(2)]
    rows += [(f"i{item}", "a2", item % 2) for item in range(12)]
    fit = softgold.fit(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), engine="coordinate")
    frame = plan_votes(fit, 40, max_per_item=1).to_frame()
    asked = frame["item"].map(lambda item: "" if int(item[1:]) < 12 else "a2")
    assert frame[ANNOTATORS_SUGGESTED].equals(asked.astype("str").rename(ANNOTATORS_SUGGESTED))
    assert (asked != "").sum() > PACE * 40 * 12 / len(rows) + 1


def test_a_vote_for_which_nobody_is_left_names_nobody() -> None:
    rows = [(f"i{item}", f"a{who}", int(item % 4 > who)) for item in range(60) for who in range(3)]
    fit = softgold.fit(pd.DataFrame(rows, columns=["item", "annotator", "vote"]), engine="coordinate")
    plan = plan_votes(fit, 10)
    assert plan.budget == 10
    assert (plan.to_frame()[ANNOTATORS_SUGGESTED] == "").all()
    assert " items by nobody: " in str(plan)


def test_a_crew_that_is_too_small_is_said(fitted: Fit) -> None:
    with pytest.raises(UsageError, match="may give 50 votes together"):
        plan_votes(fitted, 51, annotators=crew_of(fitted, capacity=2))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"annotator": ["ann", "ann"]}, "'ann' is duplicated"),
        ({"annotator": ["ann"], "capacity": [-1]}, "capacity must be a whole number"),
        ({"annotator": ["ann"], "capacity": [1.5]}, "capacity must be a whole number"),
        ({"annotator": ["ann"], "capacity": ["many"]}, "capacity must be a finite number"),
        ({"who": ["ann"]}, "has no annotator column: .*; call it annotator$"),
        ({"annotator": []}, "has no rows"),
    ],
)
def test_a_bad_list_of_annotators_is_said(rows: dict[str, list[object]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_crew(pd.DataFrame(rows))


def test_an_empty_capacity_is_no_limit() -> None:
    crew = read_crew(pd.DataFrame({"annotator": ["ann", "bob"], "capacity": [None, 3.0]}))
    assert crew.capacity[0] > 10**9
    assert crew.capacity[1] == 3
