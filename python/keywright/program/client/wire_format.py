"""Counts the messages of a protobuf document before it is parsed: one of two bytes takes 350 in memory."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

MAX_MESSAGES = 1 << 16
"""Maximum number of messages: a thousand nodes have some twenty thousand."""
MAX_RECORDS = 1 << 20
"""Maximum number of values of fields, such as categories in text."""
MAX_PACKED_BYTES = 4 << 20
"""Maximum bytes of integers of variable length; each takes eight in memory. Tensors are raw bytes."""

_FIXED = {1: 8, 5: 4}


def require_bounded(data: bytes, kind: Descriptor) -> None:
    """Refuse a document that takes more than some ten times its bytes in memory.

    Args:
        data: the document.
        kind: the descriptor of its message.

    Raises:
        ValueError: it has too many messages, values or packed integers, or is malformed.
    """
    waiting, messages, records, packed = [(memoryview(data), kind)], 0, 0, 0
    while waiting:
        view, kind = waiting.pop()
        place, messages = 0, messages + 1
        while place < len(view):
            key, place = _varint(view, place)
            records += 1
            wire, field = key & 7, kind.fields_by_number.get(key >> 3)
            if wire == 0:
                _, place = _varint(view, place)
            elif wire == 2:
                size, place = _varint(view, place)
                if size > len(view) - place:
                    raise ValueError("a field ends behind its message")
                if field is not None and field.message_type is not None:
                    waiting.append((view[place : place + size], field.message_type))
                elif field is not None and field.cpp_type not in (
                    FieldDescriptor.CPPTYPE_STRING,
                    FieldDescriptor.CPPTYPE_FLOAT,
                    FieldDescriptor.CPPTYPE_DOUBLE,
                ):
                    packed += size
                place += size
            elif wire in _FIXED:
                place += _FIXED[wire]
            else:
                raise ValueError(f"a field has the wire type {wire}")
            if messages + len(waiting) > MAX_MESSAGES or records > MAX_RECORDS or packed > MAX_PACKED_BYTES:
                raise ValueError("it has more messages or values than any honest one")


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    """Return a number of variable length and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(view):
            break
        byte = view[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("a number does not end")
