"""What the tools of this domain are given. Validators rather than limits that every agent would read in the schema."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from rookery.core.tool import ToolInput
from rookery.ledger.rates import KEYS, MAX_RATE
from rookery.ledger.store import MAX_REFERENCE, MAX_WALLET

MAX_GRANT = 1_000_000


def _number(value: Any) -> Any:
    # True would be read as 1.
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    return value


def _granted(amount: int) -> int:
    if not 1 <= amount <= MAX_GRANT:
        raise ValueError(f"must be from 1 to {MAX_GRANT}")
    return amount


def _rate(value: int) -> int:
    if not 0 <= value <= MAX_RATE:
        raise ValueError(f"must be from 0 to {MAX_RATE}")
    return value


def _wallet(text: str) -> str:
    text = text.strip()
    if not 1 <= len(text) <= MAX_WALLET or not text.isprintable():
        raise ValueError(f"must have 1 to {MAX_WALLET} characters, all of them printable")
    return text


def _reason(text: str) -> str:
    if len(text) > MAX_REFERENCE:
        raise ValueError(f"must have at most {MAX_REFERENCE} characters")
    return text.strip()


def _key(text: str) -> str:
    if text not in KEYS:
        raise ValueError(f"must be one of {', '.join(KEYS)}")
    return text


def _named(text: str) -> str:
    if not 1 <= len(text) <= MAX_WALLET:
        raise ValueError(f"must have 1 to {MAX_WALLET} characters")
    return text


Wallet = Annotated[str, AfterValidator(_wallet)]
Amount = Annotated[int, BeforeValidator(_number), AfterValidator(_granted)]
Rate = Annotated[int, BeforeValidator(_number), AfterValidator(_rate)]


class CheckCredits(ToolInput):
    wallet_address: Wallet | None = Field(None, description="Default: yours")


class GrantCredits(ToolInput):
    wallet_address: Wallet = Field(description="Whose")
    amount: Amount = Field(description="Credits")
    reference: Annotated[str, AfterValidator(_reason)] | None = Field(
        None, validation_alias=AliasChoices("reference", "reason"), description="Why"
    )


class CreditConfig(ToolInput):
    action: Literal["get", "update"] | None = Field(None, description="Verb")
    key: Annotated[str, AfterValidator(_key)] | None = Field(None, description="Rate")
    value: Rate | None = Field(None, description="New")


class GetCosts(ToolInput):
    by: Literal["agent", "issue", "run"] = Field(description="Group")
    id: Annotated[str, AfterValidator(_named)] | None = Field(None, description="Only this")
