"""What the tools of this domain are given. Validators rather than limits that every agent would read in the schema."""

from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field

from rookery.core.tool import ToolInput, ToolOutput

MAX_NAME, MAX_ADDRESS = 200, 2000


def without_fields(schema: dict[str, Any]) -> None:
    """Leave out of a schema what no agent needs to read."""
    schema.pop("properties", None)


def _named(text: str) -> str:
    if not 1 <= len(text) <= MAX_NAME:
        raise ValueError(f"must have 1 to {MAX_NAME} characters")
    return text


def address(text: str) -> str:
    """An address as somebody writes it; ValueError if it is none or too long."""
    text = text.strip()
    if not 1 <= len(text) <= MAX_ADDRESS:
        raise ValueError(f"must have 1 to {MAX_ADDRESS} characters")
    return text


AgentName = Annotated[str, AfterValidator(_named)]


class CheckReputation(ToolInput):
    agent_id: AgentName | None = Field(None, description="Default: you")


class PublishAttestation(ToolInput):
    """Agents publish their own and need no argument; people say whose."""

    model_config = ConfigDict(json_schema_extra=without_fields)

    agent_id: AgentName | None = Field(None, description="Whose, for people")


class VerifyAgentReputation(ToolInput):
    agent_url: Annotated[str, AfterValidator(address)] = Field(
        validation_alias=AliasChoices("agent_url", "wallet_address"), description="Its address, or wallet"
    )


class Told(ToolOutput):
    """Its fields are listed for no agent: whoever calls sees them."""

    model_config = ConfigDict(extra="allow", json_schema_extra=without_fields)
