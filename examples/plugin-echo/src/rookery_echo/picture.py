"""Draws a PNG with the standard library alone."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2


def draw_png(width: int, height: int) -> bytes:
    """A picture that goes from blue at the top left to orange at the bottom right."""
    rows: list[bytes] = []
    for y in range(height):
        pixels = (_colour((x + y) / max(1, width + height - 2)) for x in range(width))
        rows.append(b"\0" + b"".join(pixels))
    header = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(b"".join(rows))) + _chunk(b"IEND", b"")


def _colour(share: float) -> bytes:
    return bytes(round(start + (end - start) * share) for start, end in ((30, 250), (60, 150), (160, 30)))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
