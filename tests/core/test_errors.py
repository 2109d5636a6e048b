"""The failures that a caller may read, and their numbers at each door."""

from collections import Counter
from collections.abc import Iterator

from rookery.core import errors
from rookery.core.errors import RookeryError

# code: JSON-RPC number, HTTP status
NUMBERS = {
    "PARSE_ERROR": (-32700, 400),
    "INVALID_REQUEST": (-32600, 400),
    "METHOD_NOT_FOUND": (-32601, 404),
    "INVALID_PARAMS": (-32602, 400),
    "INTERNAL_ERROR": (-32603, 500),
    "SERVICE_UNAVAILABLE": (-32000, 503),
    "NOT_FOUND": (-32001, 404),
    "CONFLICT": (-32002, 409),
    "RATE_LIMITED": (-32003, 429),
    "TIMEOUT": (-32004, 504),
    "PERMISSION_DENIED": (-32005, 403),
    "APPROVAL_REQUIRED": (-32005, 403),
    "UNAUTHORIZED": (-32006, 401),
    "VALIDATION_ERROR": (-32007, 400),
    "CONFIGURATION_ERROR": (-32008, 500),
    "INITIALIZATION_FAILED": (-32009, 500),
    "DATABASE_ERROR": (-32010, 500),
    "AUDIT_UNAVAILABLE": (-32010, 503),
    "REQUEST_CANCELLED": (-32011, 499),
    "SERIALIZATION_ERROR": (-32070, 500),
    "UNKNOWN_ERROR": (-32099, 500),
}
WORTH_ANOTHER_TRY = {"SERVICE_UNAVAILABLE", "RATE_LIMITED", "TIMEOUT", "DATABASE_ERROR", "AUDIT_UNAVAILABLE"}


def every_error() -> Iterator[type[RookeryError]]:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return (kind for kind in found if issubclass(kind, RookeryError))


def test_every_error_has_the_numbers_of_the_table() -> None:
    assert {kind.code: (kind.rpc, kind.http) for kind in every_error()} == NUMBERS


def test_no_two_errors_share_a_code() -> None:
    assert [code for code, times in Counter(kind.code for kind in every_error()).items() if times > 1] == []


def test_errors_that_share_a_number_are_kinds_of_each_other() -> None:
    for one in every_error():
        for other in every_error():
            if one.rpc == other.rpc and one is not other:
                assert issubclass(one, other) or issubclass(other, one)


def test_only_what_may_pass_is_retryable() -> None:
    assert {kind.code for kind in every_error() if kind.retryable} == WORTH_ANOTHER_TRY


def test_the_wire_form_leaves_out_what_is_not_there() -> None:
    assert errors.NotFound("there is no issue 7").as_dict() == {
        "code": "NOT_FOUND",
        "message": "there is no issue 7",
        "retryable": False,
    }
    full = errors.PermissionDenied("no", hint="ask the owner", layer="role").as_dict()
    assert (full["hint"], full["layer"]) == ("ask the owner", "role")
