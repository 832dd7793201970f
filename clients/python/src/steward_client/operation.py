"""Operations on memory, for `Memory.apply`."""

from .requests import add, remove, replace

__all__ = ["add", "remove", "replace"]
