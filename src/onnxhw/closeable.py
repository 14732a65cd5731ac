"""`Closeable`: what has to be closed, as a context manager."""

from abc import ABC, abstractmethod
from typing import TypeVar

Self = TypeVar("Self", bound="Closeable")


class Closeable(ABC):
    """Something that holds what must be given back; as a context manager it closes when the block ends."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is held; a second call does nothing."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
