"""The roots of the errors that the book's machinery raises for its users."""


class BookError(RuntimeError):
    """Something about the book or this installation is wrong; the message says what to do."""


class UsageError(BookError):
    """Something that was asked for is not accepted; nothing has been run."""
