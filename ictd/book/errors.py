"""The root of the errors that the book's machinery raises for its users."""


class BookError(RuntimeError):
    """Something about the book or this installation is wrong; the message says what to do."""
