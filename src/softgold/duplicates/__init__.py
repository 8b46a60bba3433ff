"""The fast near-duplicate annotation plan: few questions, in rounds, that find the clusters of near duplicates."""

from softgold.duplicates.answers import answers_from_labels, answers_from_votes
from softgold.duplicates.audit import AuditBound, audit_bounds, sample_audit
from softgold.duplicates.plan import DuplicatePlan, PlanStatus, Round, propose, start_plan, status, update
from softgold.duplicates.spaces import EmbeddingSpace, MatrixSpace, Space
from softgold.duplicates.storage import load_plan, save_plan

__all__ = [
    "AuditBound",
    "DuplicatePlan",
    "EmbeddingSpace",
    "MatrixSpace",
    "PlanStatus",
    "Round",
    "Space",
    "answers_from_labels",
    "answers_from_votes",
    "audit_bounds",
    "load_plan",
    "propose",
    "sample_audit",
    "save_plan",
    "start_plan",
    "status",
    "update",
]
