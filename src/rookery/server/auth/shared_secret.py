"""Tokens that were signed with a secret shared by the issuer and this server."""

from rookery.server.auth.claims import refuse
from rookery.server.auth.signed import Json, SignedTokens, checked_claims

ALGORITHM = "HS256"


class SharedSecret(SignedTokens):
    """HS256 and nothing else, whatever the token's header asks for."""

    mode = "jwt"

    async def verify(self, token: str, header: Json) -> Json:
        if header.get("alg") != ALGORITHM:
            refuse("the token is signed in a way that this server does not accept", f"sign it with {ALGORITHM}")
        # A variable of the environment need not be proper text; its bytes are the secret then.
        return checked_claims(token, self.settings.auth_secret.encode(errors="surrogateescape"), ALGORITHM)
