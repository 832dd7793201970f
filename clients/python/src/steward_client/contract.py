"""The messages of the contract, one module per package, generated from `proto/`.

Helpers return these messages as they came; whatever has no helper can be called with them through `Steward.call`.
`session` and `model` are the package `agent` by other names, `audit` is `access`, and `skill_service` is `skill`.
"""

from steward.access import v1 as access
from steward.access import v1 as audit
from steward.agent import v1 as agent
from steward.agent import v1 as model
from steward.agent import v1 as session
from steward.common import v1 as common
from steward.learning import v1 as learning
from steward.memory import v1 as memory
from steward.recall import v1 as recall
from steward.skill import v1 as skill
from steward.skill import v1 as skill_service

__all__ = [
    "access",
    "agent",
    "audit",
    "common",
    "learning",
    "memory",
    "model",
    "recall",
    "session",
    "skill",
    "skill_service",
]
