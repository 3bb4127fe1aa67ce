"""All mutants, stage by stage."""

from __future__ import annotations

from mutants import (
    table_attack,
    table_certificates,
    table_explainers,
    table_faithfulness,
    table_features,
    table_input_space,
    table_intervals,
    table_laws,
    table_plans,
    table_promises,
    table_trees,
)

MUTANTS = (
    *table_laws.MUTANTS,
    *table_plans.MUTANTS,
    *table_promises.MUTANTS,
    *table_certificates.MUTANTS,
    *table_explainers.MUTANTS,
    *table_input_space.MUTANTS,
    *table_intervals.MUTANTS,
    *table_faithfulness.MUTANTS,
    *table_features.MUTANTS,
    *table_trees.MUTANTS,
    *table_attack.MUTANTS,
)
