"""Votes on several questions, of several classes, and counts without annotators; worked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softgold.errors import DataWarning, InputError, UsageError
from softgold.readers import read_items, read_study
from softgold.tables.study import anonymous_votes


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


TWO_TASKS = frame(
    item=["x", "x", "y", "y", "x", "z"],
    annotator=["a", "b", "a", "b", "a", "a"],
    task=["blur", "blur", "blur", "blur", "dark", "dark"],
    vote=["yes", "no", "", "1", "0", "TRUE"],
)


def test_a_task_column_is_found_and_the_same_item_may_be_in_two_tasks() -> None:
    study = read_study(TWO_TASKS)
    assert study.kind == "tasks"
    blur, dark = study.votes["blur"], study.votes["dark"]
    assert (blur.item_ids.tolist(), blur.votes.tolist(), blur.n_abstentions) == (["x", "y"], [1, 0, 1], 1)
    assert (dark.item_ids.tolist(), dark.votes.tolist(), dark.n_abstentions) == (["x", "z"], [0, 1], 0)
    assert dark.annotator_ids.tolist() == ["a"]


def test_a_task_column_of_another_name() -> None:
    study = read_study(TWO_TASKS.rename(columns={"task": "finding"}), task="finding")
    assert list(study.votes) == ["blur", "dark"]


def test_one_task_is_a_single_question() -> None:
    study = read_study(TWO_TASKS.query("task == 'dark'"))
    assert (study.kind, study.only.votes.tolist()) == ("single", [0, 1])


def test_a_question_can_be_chosen() -> None:
    assert read_study(TWO_TASKS, question="dark").only.votes.tolist() == [0, 1]


TWO_KINDS = frame(
    item="xxyyxxyy",
    annotator="abababab",
    task=["animal"] * 4 + ["blur"] * 4,
    vote=["cat", "dog", "cat", "cow", "yes", "no", "no", "no"],
)


def test_a_chosen_question_may_have_classes(tmp_path: Path) -> None:
    TWO_KINDS.to_csv(tmp_path / "votes.csv", index=False)
    TWO_KINDS.astype("category").to_parquet(tmp_path / "votes.parquet")
    for source in (TWO_KINDS, tmp_path / "votes.csv", tmp_path / "votes.parquet"):
        study = read_study(source, question="animal")
        assert study.kind == "classes"
        assert {name: table.votes.tolist() for name, table in study.votes.items()} == {
            "cat": [1, 0, 1, 0],
            "cow": [0, 0, 0, 1],
            "dog": [0, 1, 0, 0],
        }
        assert read_study(source, question="blur").only.votes.tolist() == [1, 0, 0, 0]
        assert read_study(source, question="animal", positive="cow").only.votes.tolist() == [0, 0, 0, 1]
        with pytest.raises(InputError, match=r"the values are 'cat', 'dog', 'cow'$"):
            read_study(source, question="animal", positive="yes")


def test_the_only_task_of_a_table_may_have_classes() -> None:
    study = read_study(TWO_KINDS.query("task == 'animal'"))
    assert (study.kind, list(study.votes)) == ("classes", ["cat", "cow", "dog"])


def test_a_chosen_question_of_counts() -> None:
    counts = frame(item="xyx", task="sst", n_positive=[1, 0, 2], n_votes=[2, 1, 2])
    assert read_study(counts, question="t").only.votes.tolist() == [1, 1]


def test_a_chosen_question_of_an_export_may_have_classes(tmp_path: Path) -> None:
    def answer(name: str, choice: str) -> dict[str, Any]:
        return {"from_name": name, "to_name": "i", "type": "choices", "value": {"choices": [choice]}}

    chosen = [("cat", "yes"), ("dog", "no"), ("cow", "yes")]
    tasks = [
        {
            "id": at,
            "data": {"image": f"{at}.png"},
            "annotations": [{"id": at, "completed_by": 1, "result": [answer("animal", one), answer("blur", two)]}],
        }
        for at, (one, two) in enumerate(chosen)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    study = read_study(path, question="animal")
    assert (study.kind, list(study.votes)) == ("classes", ["cat", "cow", "dog"])
    assert read_study(path, question="blur").only.votes.tolist() == [1, 0, 1]


def test_tasks_may_come_from_a_table_of_items() -> None:
    votes = frame(item=["x1", "y1", "x2"], annotator=["a", "a", "b"], vote=[1, 0, 1])
    items = frame(item=["x1", "x2", "y1", "unused"], task=["x", "x", "y", "z"])
    study = read_study(votes, items=items)
    assert {name: table.item_ids.tolist() for name, table in study.votes.items()} == {"x": ["x1", "x2"], "y": ["y1"]}
    with pytest.raises(InputError, match=r"1 of 3 items have no task, such as 'y1'"):
        read_study(votes, items=items[items["item"] != "y1"])


def test_duplicates_are_found_within_a_task_and_named_by_their_row() -> None:
    twice = pd.concat([TWO_TASKS, TWO_TASKS.iloc[[0]].assign(vote="no")])
    with pytest.raises(InputError, match=r"item 'x', annotator 'a'"):
        read_study(twice)
    assert read_study(twice, duplicates="last").votes["blur"].votes.tolist() == [0, 1, 0]


@pytest.mark.filterwarnings("ignore::softgold.errors.DataWarning")
def test_three_values_are_classes() -> None:
    study = read_study(frame(item="xxyyz", annotator="ababa", vote=["cat", "dog", "cat", "cow", ""]))
    assert study.kind == "classes"
    assert {name: table.votes.tolist() for name, table in study.votes.items()} == {
        "cat": [1, 0, 1, 0],
        "cow": [0, 0, 0, 1],
        "dog": [0, 1, 0, 0],
    }
    assert all(table.item_ids.tolist() == ["x", "y"] for table in study.votes.values())


def test_none_is_a_class_like_any_other() -> None:
    study = read_study(frame(item="xxyy", annotator="abab", vote=["none", "mild", "severe", "none"]))
    assert {name: table.votes.tolist() for name, table in study.votes.items()} == {
        "mild": [0, 1, 0, 0],
        "none": [1, 0, 0, 1],
        "severe": [0, 0, 1, 0],
    }


def test_integers_from_one_to_five_are_classes() -> None:
    study = read_study(frame(item="xxyyz", annotator="ababa", vote=[1, 2, 3, 4, 5]))
    assert (study.kind, list(study.votes)) == ("classes", ["1", "2", "3", "4", "5"])


def test_positive_makes_one_class_the_question() -> None:
    votes = frame(item="xxyy", annotator="abab", vote=["cat", "dog", "Cow", "cat"])
    assert read_study(votes, positive="cow").only.votes.tolist() == [0, 0, 1, 0]
    assert read_study(votes.assign(task=["s", "s", "t", "t"]), positive="cat").votes["t"].votes.tolist() == [0, 1]


def test_a_rare_other_value_is_a_mistake_and_no_class() -> None:
    votes = frame(item=[f"i{n}" for n in range(300)], annotator=["a"] * 300, vote=["1"] * 150 + ["0"] * 149 + ["?"])
    with pytest.raises(InputError, match=r"got '\?'"):
        read_study(votes)


def test_ids_are_no_classes() -> None:
    votes = frame(item=range(300), annotator=["a"] * 300, vote=[f"free text {n}" for n in range(300)])
    with pytest.raises(InputError, match="300 different values"):
        read_study(votes)


def test_classes_within_tasks_need_a_choice() -> None:
    votes = frame(item="xy", annotator="ab", task="st", vote=["cat", "dog"])
    with pytest.raises(InputError, match="choose one with --positive"):
        read_study(votes)
    with pytest.raises(InputError, match="no vote is 'cow'"):
        read_study(votes, positive="cow")


def test_counts_are_votes_of_strangers() -> None:
    study = read_study(frame(item="xyzw", n_positive=[0, 2, 3, 0], n_votes=[3, 3, 3, 0]))
    votes = study.only
    assert (votes.n_votes, votes.n_items, votes.n_annotators) == (9, 3, 9)
    assert votes.item_positives.tolist() == [0, 2, 3]
    assert votes.abstained_items == ("w",)
    assert votes.annotator_counts.max() == 1


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"item": "xy", "n_positive": [1, 4], "n_votes": [3, 3]}, "row 2, column 'n_positive': 4 positive votes of 3"),
        ({"item": "xy", "n_positive": [1, 1.5], "n_votes": [3, 3]}, "a count must be a whole number"),
        ({"item": "xy", "n_positive": [1, -1], "n_votes": [3, 3]}, "a count must be a whole number"),
        ({"item": "xx", "n_positive": [1, 1], "n_votes": [3, 3]}, "the item is duplicated"),
        ({"item": "xy", "n_positive": [0, 0], "n_votes": [0, 0]}, "no item has a vote"),
    ],
)
def test_bad_counts_are_named(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_study(frame(**columns))


def test_annotators_who_stand_for_no_person() -> None:
    votes = frame(item="xxyy", annotator=["slot1", "slot2"] * 2, vote=[1, 1, 0, 1])
    study = read_study(votes, anonymous=True)
    assert study.only.n_annotators == 4
    assert np.array_equal(study.only.votes, anonymous_votes(read_study(votes).only).votes)


@pytest.mark.filterwarnings("ignore:1 item has no vote")
def test_a_task_without_votes_is_left_out_with_a_warning() -> None:
    empty = pd.concat([TWO_TASKS, frame(item=["x"], annotator=["a"], task=["odd"], vote=[""])])
    with pytest.warns(DataWarning, match="task 'odd' has no votes and is left out"):
        assert list(read_study(empty).votes) == ["blur", "dark"]


def test_a_wide_table_has_no_task_column() -> None:
    with pytest.raises(UsageError, match="long table"):
        read_study(frame(item="x", a=[1], b=[0]), wide=True, task="task")


def test_items_are_read_once_each() -> None:
    with pytest.raises(InputError, match="row 2, column 'task': the item 'x' has two values of task"):
        read_items(frame(item="xx", task="st"), "task")
    with pytest.raises(InputError, match="has no column 'patient'"):
        read_items(frame(item="x", task="s"), "patient")


def test_the_findings_of_chest_radiographs(real_data: Path) -> None:
    folder = real_data / "chexpert_test"
    study = read_study(folder / "votes.csv", items=folder / "items.csv", task="task")
    assert len(study.votes) == 14
    assert {(table.n_items, table.n_annotators) for table in study.votes.values()} == {(500, 3)}


# --- counts per class, counts of several tasks, slots ---------------------------------------------------------------


def test_counts_per_class_by_hand() -> None:
    table = pd.DataFrame({"item": list("xyz"), "n_cat": [2, 0, 0], "n_dog": [1, 3, 0], "n_none": [0, 1, 0]})
    study = read_study(table)
    assert (study.kind, list(study.votes)) == ("classes", ["cat", "dog", "none"])
    positives = {name: votes.item_positives.tolist() for name, votes in study.votes.items()}
    assert positives == {"cat": [2, 0], "dog": [1, 3], "none": [0, 1]}
    assert np.sum([votes.votes for votes in study.votes.values()], axis=0).tolist() == [1] * 7  # one class per vote
    assert study.votes["cat"].item_counts.tolist() == [3, 4]
    assert tuple(study.votes["cat"].abstained_items) == ("z",)
    one = read_study(table, positive="dog")
    assert (one.kind, one.only.item_positives.tolist()) == ("single", [1, 3])


def test_counts_of_yes_and_no_are_one_question() -> None:
    study = read_study(pd.DataFrame({"item": list("xy"), "n_no": [1, 0], "n_yes": [2, 3]}))
    assert (study.kind, study.only.item_positives.tolist()) == ("single", [2, 3])


def test_counts_of_several_tasks() -> None:
    columns = {"task": ["blur", "dark", "blur"], "item": list("xxy"), "n_positive": [1, 2, 0], "n_votes": [3, 3, 4]}
    study = read_study(pd.DataFrame(columns))
    assert {name: votes.item_positives.tolist() for name, votes in study.votes.items()} == {"blur": [1, 0], "dark": [2]}


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"n_a": [1, 1], "n_b": [0, 2], "n_c": [0, 0]}, {}, "nobody voted for the class 'c'"),
        ({"n_a": [1, 1], "n_b": [0, 2], "n_votes": [1, 4]}, {}, "4 votes, but the classes add up to 3"),
        ({"n_a": [1, 1], "n_b": [0, 2]}, {"positive": "d"}, "there is no class 'd'; there are 'a', 'b'"),
        ({"n_a": [1, 0.5], "n_b": [0, 2]}, {}, "a count must be a whole number"),
    ],
)
def test_bad_counts_per_class_are_named(columns: dict[str, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_study(pd.DataFrame({"item": list("xy"), **columns}), **options)


def slots(names: list[str], *, whole: bool = True) -> pd.DataFrame:
    """Votes on 20 items, the last annotator having every second item only, or each another two items not."""
    rows = [(item, at) for item in range(20) for at in range(len(names))]
    rows = [(item, at) for item, at in rows if (at < len(names) - 1 or item % 2 if whole else item // 2 != at)]
    return pd.DataFrame([(f"i{i}", names[at], (i + at) % 2) for i, at in rows], columns=["item", "annotator", "vote"])


@pytest.mark.parametrize("names", [["slot01", "slot02"], ["rater_1", "rater_2", "rater_3"], ["0", "1"], ["R1", "R2"]])
def test_slots_are_warned_of(names: list[str]) -> None:
    with pytest.warns(DataWarning, match="look like columns and not like people"):
        read_study(slots(names))
    assert read_study(slots(names), anonymous=True).only.n_annotators == len(slots(names))


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        (["ann", "bob"], True),
        (["worker_00012", "worker_00013"], True),
        (["a0001", "a0002"], True),
        (["bc4", "bc6", "bc8"], True),
        (["rater1", "rater2", "rater4"], True),
        (["rater1", "rater2", "rater3"], False),
        ([f"a{number}" for number in range(1, 40)], True),
    ],
)
def test_people_are_not_taken_for_slots(names: list[str], whole: bool) -> None:
    assert read_study(slots(names, whole=whole)).only.n_annotators == len(names)


def test_a_panel_that_voted_on_everything_may_be_numbered() -> None:
    full = pd.DataFrame(
        [(f"i{i}", f"reader{at}", (i + at) % 2) for i in range(20) for at in (1, 2, 3)],
        columns=["item", "annotator", "vote"],
    )
    assert read_study(full).only.n_annotators == 3
    with pytest.warns(DataWarning, match="look like columns"):
        read_study(full.assign(annotator=full["annotator"].str.replace("reader", "slot")))
