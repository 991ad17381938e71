"""Chronus's round sequence at a tiny scale: judged, beside HiGHS's LP and MILP."""

from __future__ import annotations

import pytest
from families.chronus import ChronusRun, LeaseRounds, judge, names_of
from harness import Options

from copter_frontends.chronus.compact import compact_form


def options(**fields: object) -> Options:
    return Options(**({"family": "chronus", "scale": 64, "rounds": 2} | fields))


def test_rounds_are_judged_and_stand_beside_highs() -> None:
    found = ChronusRun(options(peers=("highs", "highs-milp"))).run()
    assert found["jobs"] == 32
    assert found["variables"] > 500
    assert 0.0 <= found["copter"]["integer_gap_max"] < 0.1
    peers = found["peers"]
    assert peers["highs"]["cold_ended"]
    assert peers["highs"]["value_over_copters_bound_less_1_p50"] >= -1e-6  # without variable upper bounds it is weaker
    assert peers["highs-milp"]["value_over_copters_bound_less_1_p50"] <= 1e-6


def test_names_are_of_the_compact_forms_columns_and_rows_and_survive() -> None:
    family, before = LeaseRounds(64, 3), set()
    for _ in range(2):
        records, problem, capacity = family.problem()
        program = compact_form(problem, capacity, vub=False)
        columns, rows = names_of(records, problem, capacity, family.lease)
        assert (len(rows), len(columns)) == program.shape
        assert len(set(columns)) == len(columns)
        assert len(set(rows)) == len(rows)
        assert not before or len(before & set(columns)) > 0.5 * len(columns)
        before = set(columns)
        judge(records, problem, capacity, family.lease, family.cycle())
        family.prepare()


def test_the_judge_sees_what_is_wrong() -> None:
    family = LeaseRounds(64, 0)
    records, problem, capacity = family.problem()
    found = family.cycle()
    with pytest.raises(SystemExit, match="GPUs, is worth"):
        judge(records, problem, capacity // 2, family.lease, found)
    late = next(record for record in records if len(record.leases))
    late.leases = late.leases[:-1]
    with pytest.raises(SystemExit, match=r"does not end by its deadline|has no leases|is worth"):
        judge(records, problem, capacity, family.lease, found)


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(SystemExit, match="no peer 'glop'"):
        ChronusRun(options(peers=("glop",)))
