"""The messages of the contract, one module per service, generated from `proto/`.

Helpers return these messages as they came; whatever has no helper can be called with them through `Steward.call`.
"""

from steward.access.v1 import access_service_pb2 as access
from steward.agent.v1 import agent_service_pb2 as agent
from steward.agent.v1 import model_service_pb2 as model
from steward.agent.v1 import session_service_pb2 as session
from steward.common.v1 import types_pb2 as common
from steward.learning.v1 import review_service_pb2 as learning
from steward.memory.v1 import memory_service_pb2 as memory
from steward.recall.v1 import recall_service_pb2 as recall
from steward.skill.v1 import skill_pb2 as skill
from steward.skill.v1 import skill_service_pb2 as skill_service

__all__ = ["access", "agent", "common", "learning", "memory", "model", "recall", "session", "skill", "skill_service"]
