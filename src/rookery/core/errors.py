"""Every way a call can fail that a caller may read: a code, a sentence, a hint, whether to try again.

Logic raises these; `core/call.py` and the doors turn them into answers. The numbers are the JSON-RPC and HTTP
faces of the same failure.
"""

from typing import Any, ClassVar


class RookeryError(Exception):
    """A failure that the caller may read. `hint` says what to do next."""

    code: ClassVar[str] = "UNKNOWN_ERROR"
    rpc: ClassVar[int] = -32099
    http: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, layer: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.layer = layer

    def as_dict(self) -> dict[str, Any]:
        """The wire form, the same at every door."""
        out: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        if self.hint:
            out["hint"] = self.hint
        if self.layer:
            out["layer"] = self.layer
        return out


class ParseError(RookeryError):
    code, rpc, http = "PARSE_ERROR", -32700, 400


class InvalidRequest(RookeryError):
    code, rpc, http = "INVALID_REQUEST", -32600, 400


class MethodNotFound(RookeryError):
    code, rpc, http = "METHOD_NOT_FOUND", -32601, 404


class InvalidParams(RookeryError):
    code, rpc, http = "INVALID_PARAMS", -32602, 400


class InternalError(RookeryError):
    code, rpc, http = "INTERNAL_ERROR", -32603, 500


class ServiceUnavailable(RookeryError):
    code, rpc, http, retryable = "SERVICE_UNAVAILABLE", -32000, 503, True


class NotFound(RookeryError):
    """Also the answer for what exists but the caller may not see."""

    code, rpc, http = "NOT_FOUND", -32001, 404


class Conflict(RookeryError):
    code, rpc, http = "CONFLICT", -32002, 409


class RateLimited(RookeryError):
    code, rpc, http, retryable = "RATE_LIMITED", -32003, 429, True


class TimedOut(RookeryError):
    code, rpc, http, retryable = "TIMEOUT", -32004, 504, True


class PermissionDenied(RookeryError):
    code, rpc, http = "PERMISSION_DENIED", -32005, 403


class ApprovalRequired(PermissionDenied):
    """Allowed in principle, but a person has to say yes first. `approval` is the way back for programs."""

    code = "APPROVAL_REQUIRED"
    approval: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        out = super().as_dict()
        return out if self.approval is None else {**out, "approval": self.approval}


class Unauthorized(RookeryError):
    code, rpc, http = "UNAUTHORIZED", -32006, 401


class ValidationFailed(RookeryError):
    code, rpc, http = "VALIDATION_ERROR", -32007, 400


class ConfigurationError(RookeryError):
    code, rpc, http = "CONFIGURATION_ERROR", -32008, 500


class InitializationFailed(RookeryError):
    code, rpc, http = "INITIALIZATION_FAILED", -32009, 500


class DatabaseError(RookeryError):
    code, rpc, http, retryable = "DATABASE_ERROR", -32010, 500, True


class AuditUnavailable(DatabaseError):
    """The call could not be recorded, so it was refused or undone."""

    code, http = "AUDIT_UNAVAILABLE", 503


class RequestCancelled(RookeryError):
    code, rpc, http = "REQUEST_CANCELLED", -32011, 499


class SerializationError(RookeryError):
    code, rpc, http = "SERIALIZATION_ERROR", -32070, 500
