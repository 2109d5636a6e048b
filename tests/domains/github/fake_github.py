"""GitHub on this machine, as far as the tools go: it answers as the REST API of 2022-11-28 does, refusals included."""

import base64
import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.domains.github.fake_server import Asked, Said

Json = dict[str, Any]
TOKEN = "ghp_s3cr3t"
WEB = "https://github.example"
DIFF = "application/vnd.github.diff"


def now_text() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Repo:
    name: str
    pulls: list[Json] = field(default_factory=list[Json])
    issues: list[Json] = field(default_factory=list[Json])
    """Pull requests are among them, as over there."""
    comments: dict[int, list[Json]] = field(default_factory=dict[int, list[Json]])
    reviews: dict[int, list[Json]] = field(default_factory=dict[int, list[Json]])
    diffs: dict[int, bytes] = field(default_factory=dict[int, bytes])
    files: dict[int, list[Json]] = field(default_factory=dict[int, list[Json]])
    branches: set[str] = field(default_factory=lambda: {"main"})
    created_at: str = "2020-01-01T00:00:00Z"

    def shown(self) -> Json:
        owner, _, name = self.name.partition("/")
        return {
            "id": 1, "name": name, "full_name": self.name, "owner": {"login": owner}, "private": False,
            "description": "A shop", "html_url": f"{WEB}/{self.name}", "stargazers_count": 7, "forks_count": 2,
            "open_issues_count": len(self.issues), "archived": False, "fork": False, "default_branch": "main",
            "language": "Python", "license": {"spdx_id": "MIT"}, "topics": ["shop"],
            "pushed_at": "2026-01-01T00:00:00Z", "created_at": self.created_at,
        }  # fmt: skip


class FakeGitHub:
    """One account with a token, and an App. `remaining` is what is left of the hourly limit."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {"acme/shop": Repo("acme/shop")}
        self.users = {"octocat", "acme", "robot"}
        self.login = "robot"
        self.moved: dict[str, str] = {}
        self.starred: set[str] = set()
        self.following: set[str] = set()
        self.tokens = {TOKEN}
        self.remaining = 5000
        self.reset_s = int(time.time()) + 3600
        self.app_key: rsa.RSAPublicKey | None = None
        self.app_tokens = 0
        self.app_token_lasts_s = 3600
        self.unchanged = 0
        self.elsewhere = ""
        """Where redirects lead, if not to this host."""

    @property
    def shop(self) -> Repo:
        return self.repos["acme/shop"]

    def pull(self, head: str = "fix", **more: Any) -> int:
        """The number of a new pull request."""
        return self._add_pull(self.shop, {"title": f"Do {head}", "head": head, "base": "main", "body": "", **more})

    def issue(self, title: str = "login fails", **more: Any) -> int:
        return self._add_issue(self.shop, {"title": title, "body": "", **more})["number"]

    def answer(self, asked: Asked) -> Said:
        """What it says to a request: authorized, within the limit, with an ETag."""
        if asked.path.startswith("/app/installations/"):
            return self._new_token(asked)
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return Said(401, {"message": "Bad credentials", "documentation_url": "https://docs.example"})
        if not asked.headers.get("user-agent") or asked.headers.get("x-github-api-version") != "2022-11-28":
            return Said(403, {"message": "Request forbidden by administrative rules."})
        if self.remaining <= 0:
            return Said(403, {"message": "API rate limit exceeded for user ID 1."}, self._limit_headers())
        said = self._route(asked)
        if asked.method == "GET" and said.status == 200:
            tag = f'W/"{hashlib.sha256(said.content + asked.headers.get("accept", "").encode()).hexdigest()}"'
            if asked.headers.get("if-none-match") == tag:
                self.unchanged += 1
                return Said(304, None, {"ETag": tag, **self._limit_headers()})
            said = Said(200, said.body, {**said.headers, "ETag": tag})
        self.remaining -= 1
        return Said(said.status, said.body, {**self._limit_headers(), **said.headers})

    def _limit_headers(self) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": str(self.remaining), "X-RateLimit-Resource": "core",
            "X-RateLimit-Reset": str(self.reset_s),
        }  # fmt: skip

    def _route(self, asked: Asked) -> Said:
        if asked.path == "/user":
            return self._user(asked)
        found = re.fullmatch(r"/user/(starred/[^/]+/[^/]+|following/[^/]+)", asked.path)
        if found:
            return self._account(asked.method, *found[1].split("/", 1))
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", asked.path)
        if found and found[1] in self.moved:
            place = self.elsewhere or f"http://{asked.headers['host']}"
            rest = (found[2] or "") if asked.method == "GET" else ""
            status = 301 if asked.method == "GET" else 307
            return Said(status, {"message": "Moved"}, {"Location": f"{place}/repos/{self.moved[found[1]]}{rest}"})
        repo = self.repos.get(found[1]) if found else None
        if repo is None or found is None:
            return NOT_FOUND
        return self._in_repo(repo, asked, found[2] or "")

    def _user(self, asked: Asked) -> Said:
        if asked.headers["authorization"].startswith("Bearer ghs_"):
            return Said(403, {"message": "Resource not accessible by integration"})
        return Said(200, {"login": self.login})

    def _account(self, method: str, what: str, name: str) -> Said:
        known, kept = (self.repos, self.starred) if what == "starred" else (self.users, self.following)
        if name not in known:
            return NOT_FOUND
        (kept.add if method == "PUT" else kept.discard)(name)
        return Said(204)

    def _in_repo(self, repo: Repo, asked: Asked, rest: str) -> Said:
        if rest == "":
            return Said(200, repo.shown())
        if rest == "/forks":
            return self._fork(repo, asked.json() or {})
        if rest == "/pulls":
            return self._pulls(repo, asked) if asked.method == "GET" else self._post_pull(repo, asked.json())
        if rest == "/issues":
            return (
                self._issues(repo, asked) if asked.method == "GET" else Said(201, self._add_issue(repo, asked.json()))
            )
        found = re.fullmatch(r"/(pulls|issues)/(\d+)(/files|/reviews|/comments)?", rest)
        number = int(found[2]) if found else 0
        if found is None or not any(issue["number"] == number for issue in repo.issues):
            return NOT_FOUND
        if found[3] == "/comments":
            return self._comments(repo, number, asked)
        pull = next((pull for pull in repo.pulls if pull["number"] == number), None)
        if pull is None:
            return NOT_FOUND
        if found[3] == "/files":
            return paged(repo.files.get(number, []), asked)
        if found[3] == "/reviews":
            return self._reviews(repo, number, asked)
        if asked.headers.get("accept") == DIFF:
            return self._diff(repo, number)
        return Said(200, {**pull, "additions": 3, "deletions": 1, "changed_files": 2})

    def _diff(self, repo: Repo, number: int) -> Said:
        if number in repo.files:
            fault = {"resource": "PullRequest", "field": "diff", "code": "too_large"}
            return Said(406, {"message": "Sorry, the diff exceeded the maximum number of lines", "errors": [fault]})
        return Said(200, repo.diffs.get(number, b""), {"Content-Type": f"{DIFF}; charset=utf-8"})

    def _fork(self, repo: Repo, given: Json) -> Said:
        owner = given.get("organization", self.login)
        if owner not in self.users:
            return Said(422, {"message": "Validation Failed", "errors": [f"organization '{owner}' not found"]})
        name = f"{owner}/{repo.name.partition('/')[2]}"
        fork = self.repos.setdefault(name, Repo(name, created_at=now_text()))
        return Said(202, fork.shown())

    def _pulls(self, repo: Repo, asked: Asked) -> Said:
        found = [pull for pull in repo.pulls if asked.query.get("state", "open") in ("all", pull["state"])]
        head, base = asked.query.get("head"), asked.query.get("base")
        if head is not None:
            found = [pull for pull in found if head == f"{pull['user']['login']}:{pull['head']['ref']}"]
        return paged([pull for pull in reversed(found) if base in (None, pull["base"]["ref"])], asked)

    def _post_pull(self, repo: Repo, given: Json) -> Said:
        branch = given["head"].rpartition(":")[2]
        if branch not in repo.branches:
            fault = {"resource": "PullRequest", "field": "head", "code": "invalid"}
            return Said(422, {"message": "Validation Failed", "errors": [fault]})
        if any(pull["state"] == "open" and pull["head"]["ref"] == branch for pull in repo.pulls):
            told = f"A pull request already exists for acme:{branch}."
            return Said(422, {"message": "Validation Failed", "errors": [{"code": "custom", "message": told}]})
        number = self._add_pull(repo, {**given, "head": branch})
        return Said(201, next(pull for pull in repo.pulls if pull["number"] == number))

    def _add_pull(self, repo: Repo, given: Json) -> int:
        number = self._number(repo)
        pull = {
            "draft": False, "merged_at": None, "created_at": now_text(), "state": "open",
            "user": {"login": repo.name.partition("/")[0]}, "html_url": f"{WEB}/{repo.name}/pull/{number}", **given,
            "number": number, "head": {"ref": given["head"]}, "base": {"ref": given["base"]},
        }  # fmt: skip
        repo.pulls.append(pull)
        repo.issues.append({**pull, "pull_request": {"url": pull["html_url"]}, "labels": []})
        return number

    def _issues(self, repo: Repo, asked: Asked) -> Said:
        wanted = {each for each in asked.query.get("labels", "").split(",") if each}
        found = [
            issue
            for issue in reversed(repo.issues)
            if asked.query.get("state", "open") in ("all", issue["state"])
            and wanted <= {label["name"] for label in issue["labels"]}
        ]
        return paged(found, asked)

    def _add_issue(self, repo: Repo, given: Json) -> Json:
        number = self._number(repo)
        issue = {
            "state": "open", "user": {"login": self.login}, "created_at": now_text(),
            "html_url": f"{WEB}/{repo.name}/issues/{number}", **given, "number": number,
            "labels": [{"name": name} for name in given.get("labels", [])],
        }  # fmt: skip
        repo.issues.append(issue)
        return issue

    def _number(self, repo: Repo) -> int:
        return max((issue["number"] for issue in repo.issues), default=0) + 1

    def _comments(self, repo: Repo, number: int, asked: Asked) -> Said:
        comments = repo.comments.setdefault(number, [])
        if asked.method == "GET":
            return paged([each for each in comments if each["created_at"] >= asked.query.get("since", "")], asked)
        url = f"{WEB}/{repo.name}/pull/{number}#issuecomment-{len(comments) + 1}"
        comments.append({"id": len(comments) + 1, "created_at": now_text(), "html_url": url, **asked.json()})
        return Said(201, comments[-1])

    def _reviews(self, repo: Repo, number: int, asked: Asked) -> Said:
        reviews = repo.reviews.setdefault(number, [])
        if asked.method == "GET":
            return paged(reviews, asked)
        given = asked.json()
        if given["event"] == "APPROVE" and repo.name.startswith(self.login):
            return Said(422, {"message": "Unprocessable Entity", "errors": ["Can not approve your own pull request"]})
        url = f"{WEB}/{repo.name}/pull/{number}#pullrequestreview-{len(reviews) + 1}"
        reviews.append({"id": len(reviews) + 1, "html_url": url, **given})
        return Said(200, reviews[-1])

    def _new_token(self, asked: Asked) -> Said:
        if asked.path != "/app/installations/99/access_tokens":
            return NOT_FOUND
        if self.app_key is None or not signed_by(self.app_key, asked.headers.get("authorization", "")):
            return Said(401, {"message": "A JSON web token could not be decoded"})
        self.app_tokens += 1
        token = f"ghs_{self.app_tokens}"
        self.tokens.add(token)
        ends = datetime.fromtimestamp(time.time() + self.app_token_lasts_s, UTC)
        return Said(201, {"token": token, "expires_at": f"{ends:%Y-%m-%dT%H:%M:%SZ}"})


NOT_FOUND = Said(404, {"message": "Not Found", "documentation_url": "https://docs.example", "status": "404"})


def paged(entries: list[Json], asked: Asked) -> Said:
    """One page of a list, and where the others are."""
    size = min(int(asked.query.get("per_page", "30")), 100)
    page = int(asked.query.get("page", "1"))
    last = max(1, -(-len(entries) // size))
    links = {"next": page + 1, "last": last} if page < last else {}
    links |= {"prev": page - 1, "first": 1} if page > 1 else {}
    place = f"http://{asked.headers['host']}{asked.path}"
    link = ", ".join(f'<{place}?per_page={size}&page={number}>; rel="{name}"' for name, number in links.items())
    return Said(200, entries[(page - 1) * size : page * size], {"Link": link} if link else {})


def signed_by(key: rsa.RSAPublicKey, authorization: str) -> bool:
    """Whether a JWT is the App's, and good now for no more than ten minutes."""
    try:
        text, _, signature = authorization.removeprefix("Bearer ").rpartition(".")
        key.verify(_decoded(signature), text.encode(), padding.PKCS1v15(), hashes.SHA256())
        head, claims = (json.loads(_decoded(part)) for part in text.split("."))
    except (InvalidSignature, ValueError):
        return False
    return _is_good(head, claims)


def _is_good(head: Mapping[str, Any], claims: Mapping[str, Any]) -> bool:
    now = time.time()
    in_time = claims["iat"] <= now < claims["exp"] <= now + 600
    return head["alg"] == "RS256" and claims["iss"] == "7" and in_time


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
