"""Bearer tokens of an issuer that these tests run: accepted and refused tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from keywright.client import RemoteModel
from keywright.errors.service import BusyError, ConfigurationError, UnauthorizedError
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.tenants import oidc
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.oidc import DISCOVERY, LIMITS, Issuer
from tests.serve.clients.test_deadlines import SENDS, dripping
from tests.serve.http.test_http import ask, wait
from tests.serve.network import WORKERS, listening
from tests.serve.tenants.test_accounts import bearer

RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
KEYS: dict[str, Any] = {
    "RS256": RSA,
    "PS256": RSA,
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
AUDIENCE = "keywright"


def jwk(private: Any, algorithm: str, name: str | None) -> dict[str, Any]:
    """The public half of a key, as an issuer lists it."""
    kind = jwt.get_algorithm_by_name(algorithm)
    entry: dict[str, Any] = kind.to_jwk(private.public_key(), as_dict=True)
    entry |= {"alg": algorithm, "use": "sig"}
    return entry if name is None else {**entry, "kid": name}


class TestIssuer:
    """An issuer on the loopback. Its answers can be changed, and are counted."""

    __test__ = False

    def __init__(self) -> None:
        self.asked, self.answers = 0, True
        self.documents: dict[str, bytes] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                data = outer.documents.get(self.path) if outer.answers else None
                if data is not None and data.startswith(b"http"):
                    self.send_response(302)
                    self.send_header("Location", data.decode())
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(500 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/realms/one"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.describe(issuer=self.url, jwks_uri=f"{self.url}/keys")
        self.list([jwk(key, name, name) for name, key in KEYS.items()])

    def describe(self, **entry: object) -> None:
        self.documents["/realms/one" + DISCOVERY] = json.dumps(entry).encode()

    def list(self, keys: object) -> None:
        self.documents["/realms/one/keys"] = json.dumps({"keys": keys}).encode()

    def token(
        self, algorithm: str = "RS256", key: Any = None, name: str | None = "", **claims: object
    ) -> str:
        entry = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "exp": time.time() + 300, **claims}
        headers = {} if name is None else {"kid": name or algorithm}
        kept = {claim: value for claim, value in entry.items() if value is not None}
        return jwt.encode(kept, key or KEYS[algorithm], algorithm, headers=headers)


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def test_issuer() -> Iterator[TestIssuer]:
    issuer = TestIssuer()
    yield issuer
    issuer.server.shutdown()
    issuer.server.server_close()


@pytest.fixture
def issuer(test_issuer: TestIssuer, clock: Clock) -> Issuer:
    return Issuer(test_issuer.url, AUDIENCE, clock=clock)


@pytest.mark.parametrize("algorithm", KEYS)
def test_tokens_of_the_issuer_name_the_tenant(
    issuer: Issuer, test_issuer: TestIssuer, algorithm: str
) -> None:
    assert issuer.tenant(test_issuer.token(algorithm)) == "oidc.alice"
    assert issuer.tenant(test_issuer.token(algorithm, aud=["another", AUDIENCE])) == "oidc.alice"
    assert test_issuer.asked == 2


@pytest.mark.parametrize("algorithm", oidc.ALGORITHMS)
def test_a_key_that_names_no_algorithm_is_for_those_of_its_kind(
    issuer: Issuer, test_issuer: TestIssuer, algorithm: str
) -> None:
    """PS256 and RS512 were refused."""
    private = {"ES512": ec.generate_private_key(ec.SECP521R1())}.get(algorithm) or {
        "R": RSA,
        "P": RSA,
        "E": KEYS.get(algorithm),
    }[algorithm[0]]
    listed = jwk(private, algorithm, "one")
    del listed["alg"]
    test_issuer.list([listed])
    assert issuer.tenant(test_issuer.token(algorithm, private, "one")) == "oidc.alice"
    # Another kind of key is still another.
    for name, key in KEYS.items():
        if type(key) is not type(private) or (algorithm[0] == "E" and name != algorithm):
            with pytest.raises(UnauthorizedError):
                issuer.tenant(test_issuer.token(name, key, "one"))


def test_a_key_that_names_its_algorithm_is_for_no_other(issuer: Issuer, test_issuer: TestIssuer) -> None:
    assert issuer.tenant(test_issuer.token("RS256", RSA, "RS256")) == "oidc.alice"
    with pytest.raises(UnauthorizedError):
        issuer.tenant(test_issuer.token("RS512", RSA, "RS256"))
    with pytest.raises(UnauthorizedError):
        issuer.tenant(test_issuer.token("PS256", RSA, "RS256"))


def test_names_of_tenants_are_names_and_no_two_are_the_same(issuer: Issuer, test_issuer: TestIssuer) -> None:
    subjects = ["alice", "Alice", "a b", "../alice", "a" * 59, "a" * 60, "oidc-x", "é", "\ud800"]
    names = [issuer.tenant(test_issuer.token(sub=subject)) for subject in subjects]
    assert len(set(names)) == len(subjects)
    Accounts({name: [] for name in names})
    assert names[2] == "oidc-" + hashlib.sha256(b"a b").hexdigest()[:32]


def unsigned(header: dict[str, object], claims: dict[str, object], secret: bytes | None = None) -> str:
    """Return a token without a signature, or with a digest by a known secret."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signed = b".".join(parts)
    mac = b"" if secret is None else hmac.digest(secret, signed, "sha256")
    return (signed + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


def test_other_tokens_are_refused(issuer: Issuer, test_issuer: TestIssuer) -> None:
    now = time.time()
    public = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    claims = {"iss": test_issuer.url, "aud": AUDIENCE, "sub": "alice", "exp": now + 300}
    good = test_issuer.token()
    head, body, signature = good.split(".")
    changed = json.dumps({**claims, "sub": "bob"}).encode()
    wrong = {
        "another issuer": test_issuer.token(iss="https://elsewhere.example"),
        "no issuer": test_issuer.token(iss=None),
        "another audience": test_issuer.token(aud="another"),
        "no audience": test_issuer.token(aud=None),
        "expired": test_issuer.token(exp=now - 60),
        "no expiry": test_issuer.token(exp=None),
        "not yet": test_issuer.token(nbf=now + 60),
        "nobody": test_issuer.token(sub=None),
        "an empty name": test_issuer.token(sub=""),
        "another's signature": test_issuer.token(key=OTHER),
        "another's key": test_issuer.token("ES256", name="ES384"),
        "an unknown key": test_issuer.token(name="nobody"),
        "no key named, where there are several": test_issuer.token(name=None),
        "no signature": unsigned({"alg": "none", "typ": "JWT"}, claims),
        "none, in other letters": unsigned({"alg": "NoNe", "kid": "RS256"}, claims),
        "the public key as a shared secret": unsigned({"alg": "HS256", "kid": "RS256"}, claims, public),
        "another key type": unsigned({"alg": "ES256", "kid": "RS256"}, claims, public),
        "other claims": f"{head}.{base64.urlsafe_b64encode(changed).decode().rstrip('=')}.{signature}",
        "half": good[: len(good) // 2],
        "no signature behind the point": f"{head}.{body}.",
        "nothing": "",
        "bytes": "\xff.\xff.\xff",
        "deep": unsigned({"alg": "RS256", "kid": "RS256", "x": "[" * 4000}, claims),
        "long": good + "A" * oidc.MAX_TOKEN,
    }
    for what, token in wrong.items():
        with pytest.raises(UnauthorizedError) as refused:
            issuer.tenant(token)
        assert token == "" or token not in str(refused.value), what
    assert issuer.tenant(good) == "oidc.alice"


def test_another_claim_may_name_the_tenant(test_issuer: TestIssuer) -> None:
    issuer = Issuer(test_issuer.url, AUDIENCE, "org")
    assert issuer.tenant(test_issuer.token(org="clinic", sub="alice")) == "oidc.clinic"
    for org in (None, 3, ["clinic"]):
        with pytest.raises(UnauthorizedError):
            issuer.tenant(test_issuer.token(org=org))


def test_keys_are_fetched_rarely_whatever_tokens_arrive(
    issuer: Issuer, test_issuer: TestIssuer, clock: Clock
) -> None:
    for _ in range(3):
        issuer.tenant(test_issuer.token())
        for _ in range(5):
            with pytest.raises(UnauthorizedError, match="does not have"):
                issuer.tenant(test_issuer.token(name="unknown"))
    assert test_issuer.asked == 2
    clock.now += oidc.PAUSE_S
    with pytest.raises(UnauthorizedError):
        issuer.tenant(test_issuer.token(name="unknown"))
    assert test_issuer.asked == 4


def test_keys_that_are_rotated_are_found_and_old_ones_forgotten(
    issuer: Issuer, test_issuer: TestIssuer, clock: Clock
) -> None:
    old = test_issuer.token()
    assert issuer.tenant(old) == "oidc.alice"
    test_issuer.list([jwk(OTHER, "RS256", "next")])
    clock.now += oidc.PAUSE_S
    assert issuer.tenant(old) == "oidc.alice"
    # A token with the next key triggers a reload of the keys, long before they are stale.
    new = test_issuer.token(key=OTHER, name="next")
    assert issuer.tenant(new) == "oidc.alice"
    with pytest.raises(UnauthorizedError):
        issuer.tenant(old)
    # With a single key, a token need not name it.
    assert issuer.tenant(test_issuer.token(key=OTHER, name=None)) == "oidc.alice"
    # What was withdrawn is gone when the keys are old.
    test_issuer.list([])
    clock.now += oidc.FRESH_S
    with pytest.raises(UnauthorizedError):
        issuer.tenant(new)


def test_cached_keys_are_used_during_an_outage_of_the_issuer(
    issuer: Issuer, test_issuer: TestIssuer, clock: Clock
) -> None:
    test_issuer.answers = False
    with pytest.raises(BusyError, check=lambda error: error.code == "issuer_unreachable"):
        issuer.tenant(test_issuer.token())
    test_issuer.answers = True
    # It was asked just now.
    with pytest.raises(BusyError, check=lambda error: error.code == "issuer_unreachable"):
        issuer.tenant(test_issuer.token())
    clock.now += oidc.PAUSE_S
    assert issuer.tenant(test_issuer.token()) == "oidc.alice"
    test_issuer.answers = False
    clock.now += oidc.STALE_S - 1
    before = test_issuer.asked
    for _ in range(3):
        assert issuer.tenant(test_issuer.token()) == "oidc.alice"
    assert test_issuer.asked == before + 1
    clock.now += 2
    with pytest.raises(BusyError, check=lambda error: error.code == "issuer_unreachable"):
        issuer.tenant(test_issuer.token())
    test_issuer.answers = True
    clock.now += oidc.PAUSE_S
    assert issuer.tenant(test_issuer.token()) == "oidc.alice"


def test_a_slow_issuer_does_not_delay_tokens_with_cached_keys(
    thin: Model, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: 48 anonymous connections with unknown keys, and honest requests waited 8.5 seconds."""
    slow, asked = threading.Event(), list[str]()
    test_issuer = TestIssuer()
    fetch = oidc._fetch_keys

    def fetch_slowly(url: str) -> Any:
        asked.append(url)
        document = fetch(url)
        if len(asked) > 1:
            slow.wait()
        return document

    monkeypatch.setattr(oidc, "_fetch_keys", fetch_slowly)
    issuer = Issuer(test_issuer.url, AUDIENCE, clock=clock)
    honest = {"Authorization": f"Bearer {test_issuer.token()}"}
    evil = {"Authorization": f"Bearer {test_issuer.token(name='unknown')}"}
    service = Service(thin, tmp_path, workers=WORKERS, accounts=Accounts.load(None, issuer, []))
    with listening(service) as server:
        assert ask(server, "GET", "/v1/keys", headers=honest)[0] == 200
        clock.now += oidc.PAUSE_S
        said: list[int] = []
        paths = ("/v1/keys", "/metrics", "/admin")

        def attack(number: int) -> None:
            said.append(ask(server, "GET", paths[number % 3], headers=evil)[0])

        threads = [threading.Thread(target=attack, args=(number,)) for number in range(48)]
        for thread in threads:
            thread.start()
        wait(lambda: len(asked) == 2)
        time.sleep(0.2)
        begun = time.monotonic()
        for _ in range(10):
            assert ask(server, "GET", "/v1/keys", headers=honest)[0] == 200
        assert time.monotonic() - begun < 2
        # A key that is known but old waits for a moment only, and only once.
        clock.now += oidc.FRESH_S
        begun = time.monotonic()
        for _ in range(3):
            assert ask(server, "GET", "/v1/keys", headers=honest)[0] == 200
        assert time.monotonic() - begun < 2
        assert said == []
        slow.set()
        for thread in threads:
            thread.join()
        assert said == [401] * 48
        # Whatever is unknown, nobody asks again so soon; the clock went on by more than that, once.
        assert len(asked) <= 3
    service.close()
    test_issuer.server.shutdown()
    test_issuer.server.server_close()


SHORT = rsa.generate_private_key(65537, 1024)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda issuer: issuer.describe(issuer="https://elsewhere.example", jwks_uri=f"{issuer.url}/keys"),
        lambda issuer: issuer.describe(issuer=issuer.url),
        lambda issuer: issuer.describe(issuer=issuer.url, jwks_uri="file:///etc/passwd"),
        lambda issuer: issuer.describe(issuer=issuer.url, jwks_uri="http://elsewhere.example/keys"),
        lambda issuer: issuer.documents.update({"/realms/one/keys": b"[]"}),
        lambda issuer: issuer.documents.update({"/realms/one/keys": b"[" * 100_000}),
        lambda issuer: issuer.documents.update({"/realms/one/keys": b" " * (LIMITS.bytes + 1)}),
        lambda issuer: issuer.documents.update({"/realms/one/keys": f"{issuer.url}/elsewhere".encode()}),
        lambda issuer: issuer.list({}),
        lambda issuer: issuer.list([jwk(RSA, "RS256", str(i)) for i in range(oidc.MAX_KEYS + 1)]),
    ],
)
def test_unsafe_documents_of_an_issuer_are_refused(
    issuer: Issuer, test_issuer: TestIssuer, spoil: Callable[[TestIssuer], None]
) -> None:
    test_issuer.documents["/realms/one/elsewhere"] = test_issuer.documents["/realms/one/keys"]
    spoil(test_issuer)
    with pytest.raises(BusyError, check=lambda error: error.code == "issuer_unreachable"):
        issuer.tenant(test_issuer.token())


def test_keys_that_cannot_sign_tokens_are_left_out(issuer: Issuer, test_issuer: TestIssuer) -> None:
    shared = base64.urlsafe_b64encode(b"x" * 32).decode().rstrip("=")
    test_issuer.list(
        [
            {"kty": "oct", "k": shared, "alg": "HS256", "kid": "shared"},
            {"kty": "oct", "k": shared, "kid": "RS256"},
            # One of these kept the issuer's other keys from being read.
            {"kty": "oct", "kid": "empty"},
            {"kty": "oct", "crv": "P-256", "kid": "empty"},
            {**jwk(RSA, "RS256", "none"), "alg": "none"},
            {**jwk(RSA, "RS256", "encrypts"), "use": "enc"},
            {"kty": "RSA", "kid": "broken"},
            3,
            jwk(SHORT, "RS256", "short"),
            jwk(KEYS["EdDSA"], "EdDSA", "EdDSA"),
        ]
    )
    assert issuer.tenant(test_issuer.token("EdDSA")) == "oidc.alice"
    for token in (
        test_issuer.token("HS256", b"x" * 32, "shared"),
        test_issuer.token(),
        test_issuer.token(name="encrypts"),
        test_issuer.token(name="broken"),
    ):
        with pytest.raises(UnauthorizedError):
            issuer.tenant(token)
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        short = test_issuer.token(key=SHORT, name="short")
    with pytest.raises(UnauthorizedError):
        issuer.tenant(short)


@pytest.mark.parametrize(
    ("url", "audience", "claim"),
    [
        ("http://issuer.example", AUDIENCE, "sub"),
        ("file:///etc/passwd", AUDIENCE, "sub"),
        ("https://", AUDIENCE, "sub"),
        ("https://issuer.example", "", "sub"),
        ("https://issuer.example", AUDIENCE, ""),
    ],
)
def test_an_issuer_has_an_address_that_is_protected(url: str, audience: str, claim: str) -> None:
    with pytest.raises(ConfigurationError, check=lambda error: error.code == "issuer"):
        Issuer(url, audience, claim)


def test_a_server_takes_tokens_and_keys_beside_each_other(
    thin: Model,
    tmp_path: Path,
    sample: np.ndarray[Any, np.dtype[np.float64]],
    test_issuer: TestIssuer,
) -> None:
    path = tmp_path / "accounts.json"
    key = add(path, "static")
    accounts = Accounts.load(path, Issuer(test_issuer.url, AUDIENCE))
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=accounts)
    with listening(service) as server:
        alice, bob = test_issuer.token("ES256"), test_issuer.token(sub="bob")
        with RemoteModel(server.url, key=alice, insecure=True).session() as session:
            assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
            own = f"/v1/keys/{session._identifier}"
            assert ask(server, "GET", own, headers=bearer(alice))[0] == 200
            for other in (bob, key):
                assert ask(server, "GET", own, headers=bearer(other))[0] == 404
                assert ask(server, "GET", "/v1/keys", headers=bearer(other))[1] == {"keys": []}
        status, reply, headers = ask(server, "GET", "/v1/keys", headers=bearer(test_issuer.token(exp=1)))
        assert (status, reply["error"]["type"]) == (401, "unauthorized")
        assert headers["www-authenticate"] == "Bearer"
    service.close()
    test_issuer.answers = False
    away = Accounts({}, Issuer(test_issuer.url, AUDIENCE))
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=away)
    with listening(service) as server:
        status, reply, _ = ask(server, "GET", "/v1/keys", headers=bearer(alice))
        assert (status, reply["error"]["type"]) == (503, "issuer_unreachable")
        assert ask(server, "GET", "/v1/model")[0] == 200
    service.close()


@pytest.mark.parametrize("what", [name for name in SENDS if name != "a handshake"])
def test_a_document_that_trickles_is_given_up(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the body had a deadline: an issuer whose head came byte by byte was never asked again."""
    monkeypatch.setattr(oidc, "TIMEOUT_S", 0.5)
    begun = time.monotonic()
    with dripping(*SENDS[what]) as port, pytest.raises(BusyError, match=r"within 0\.5 s"):
        oidc._fetch(f"http://127.0.0.1:{port}/keys")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (1 << 20),
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[[[[[[[[[",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"nothing\r\n\r\n",
    ],
    ids=["a redirect", "a long document", "no JSON", "no chunk", "no HTTP"],
)
def test_other_answers_of_an_issuer_are_refused(reply: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "TIMEOUT_S", 0.5)
    with dripping(reply, b"") as port, pytest.raises(BusyError):
        oidc._fetch(f"http://127.0.0.1:{port}/keys")
