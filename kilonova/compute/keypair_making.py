"""Making key pairs: RSA 2048 in the forms that clients expect (server-view 3)."""

from __future__ import annotations

import base64
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kilonova.core import clock

_COMMENT = "Generated-by-Nova"  # the wire format's own words
_YEARS = 10


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def ssh_pair() -> tuple[str, str]:
    """(private key in PEM, public key in OpenSSH form)."""
    key = _key()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    return private, f"{public} {_COMMENT}"


def x509_pair(user_id: str) -> tuple[str, str]:
    """(PKCS#12 with key and certificate as base64, certificate in PEM); for WinRM log-in, valid for ten years."""
    key = _key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64])])
    now = clock.utcnow()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=365 * _YEARS))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    bundle = pkcs12.serialize_key_and_certificates(
        b"", key, certificate, None, serialization.NoEncryption()
    )
    return base64.b64encode(bundle).decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()
