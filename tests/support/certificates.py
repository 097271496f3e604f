"""A private certificate authority with a server's and a client's certificate, as files."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PASSWORD: Final = "not a secret"
_DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Where the files are: `combined` holds certificate and key, `locked` needs `PASSWORD`."""

    authority: Path
    server: Path
    certificate: Path
    key: Path
    combined: Path
    locked: Path

    def context(self, *, wants_client: bool) -> ssl.SSLContext:
        """Return what a server at 127.0.0.1 serves with."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.server)
        if wants_client:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(folder: Path) -> Certificates:
    """Make all of them anew in a folder."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _signed("Tests", authority_key, "Tests", authority_key, is_authority=True)

    def issued(name: str) -> tuple[bytes, ec.EllipticCurvePrivateKey]:
        key = ec.generate_private_key(ec.SECP256R1())
        return _pem(_signed(name, key, "Tests", authority_key)), key

    server, server_key = issued("127.0.0.1")
    client, client_key = issued("client")

    def file(name: str, *parts: bytes) -> Path:
        path = folder / name
        path.write_bytes(b"".join(parts))
        return path

    return Certificates(
        authority=file("authority.pem", _pem(authority)),
        server=file("server.pem", server, _key(server_key)),
        certificate=file("client.crt", client),
        key=file("client.key", _key(client_key)),
        combined=file("client.pem", client, _key(client_key)),
        locked=file("locked.key", _key(client_key, PASSWORD)),
    )


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority_id, critical=False)
    )
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey, password: str = "") -> bytes:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
