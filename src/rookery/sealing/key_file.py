"""A key file: at least 32 random bytes that nobody but the server's user can read."""

import os
import stat

from rookery.core.errors import ConfigurationError

SHORTEST, LONGEST = 32, 64 * 1024
# Sixteen hexadecimal digits are all that a key written as text has; a file of zeros has one.
FEWEST_DIFFERENT = 8
_MAKE = "make one with: (umask 077; openssl rand -out rookery.key 32)"


def read_key_file(path: str) -> bytes:
    """Every byte of the file, the last newline too. One that others may read, or that is too short, is refused."""
    try:
        # Opening a pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise ConfigurationError(f"the key file {path!r} cannot be read: {reason}", hint=_MAKE) from None
    try:
        _check_keeper(path, os.fstat(handle))
        secret = os.read(handle, LONGEST + 1)
    finally:
        os.close(handle)
    if len(secret) < SHORTEST:
        raise ConfigurationError(f"the key file {path} has {len(secret)} bytes, and it needs {SHORTEST}", hint=_MAKE)
    if len(secret) > LONGEST:
        raise ConfigurationError(f"the key file {path} has more than {LONGEST} bytes, so it is no key", hint=_MAKE)
    if len(set(secret)) < FEWEST_DIFFERENT:
        raise ConfigurationError(f"what the key file {path} holds is not random", hint=_MAKE)
    return secret


def _check_keeper(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"the key file {path} is no file", hint=_MAKE)
    if found.st_uid not in (0, os.geteuid()):
        raise ConfigurationError(f"the key file {path} belongs to another user", hint="run rookery as its owner")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigurationError(f"other users can reach the key file {path} (mode {mode:o})", hint=f"chmod 600 {path}")
