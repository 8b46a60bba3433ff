"""The fast near-duplicate annotation plan: few questions, in rounds, that find the clusters of near duplicates."""

from softgold.imaging.duplicates.answers import answers_from_labels, answers_from_votes
from softgold.imaging.duplicates.audit import AuditBound, audit_bounds, sample_audit
from softgold.imaging.duplicates.plan import DuplicatePlan, PlanStatus, Round, propose, start_plan, status, update
from softgold.imaging.duplicates.spaces import EmbeddingSpace, MatrixSpace, Space
from softgold.imaging.duplicates.storage import load_plan, save_plan

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
