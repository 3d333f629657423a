"""TLS to servers: trusted authorities, our certificate, and messages for failed handshakes that name the setting."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.runtime.errors import named

# OpenSSL's verification results, X509_V_ERR_* of x509_vfy.h.
NOT_YET_VALID = 9
EXPIRED = 10
UNKNOWN_ISSUER = frozenset({2, 18, 19, 20, 21})
OTHER_NAME = frozenset({62, 64})  # host name, IP address


@dataclass(frozen=True)
class TlsFiles:
    """PEM files, and the prefix of their settings: `kafka` for `kafka_ca`, `kafka_certificate`, ..."""

    setting: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = None

    def context(self) -> ssl.SSLContext:
        """For connections to the server. Reads the files.

        Raises:
            ValueError: a file is missing or wrong; names the setting and the file, never its content.
        """
        context = ssl.create_default_context()
        if self.ca is not None:
            # Trust only the named authority, not the system's public ones as well.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            try:
                context.load_verify_locations(cafile=_readable(self.ca, f"{self.setting}_ca"))
            except (ssl.SSLError, OSError):
                raise ValueError(f"{self._named('ca')}: {self.ca} holds no PEM certificate") from None
        if self.certificate is not None:
            self._load_own(context)
        return context

    def _load_own(self, context: ssl.SSLContext) -> None:
        assert self.certificate is not None
        certificate = _readable(self.certificate, f"{self.setting}_certificate")
        key = None if self.key is None else _readable(self.key, f"{self.setting}_certificate_key")
        password = self.key_password

        def given_password() -> str:
            # Without this function, OpenSSL would prompt on the terminal, and a server would hang.
            if password is None:
                raise ValueError(
                    f"{self._named('certificate_key')}: the key has a password, none is given: "
                    f"{self._named('certificate_password')}"
                )
            return password

        try:
            context.load_cert_chain(certificate, key, password=given_password)
        except ssl.SSLError as err:
            if err.reason == "KEY_VALUES_MISMATCH":
                said = f"{self._named('certificate_key')}: {self.key or certificate} is not the key of {certificate}"
            elif err.reason in ("BAD_DECRYPT", "BAD_PASSWORD_READ") or password is not None:
                said = f"{self._named('certificate_password')}: does not open {self.key or certificate}"
            else:
                said = f"{self._named('certificate')}: {certificate} must hold a PEM certificate" + (
                    f", {key} its key" if key else " and its key, unless that has a file of its own"
                )
            raise ValueError(said) from None

    def _named(self, what: str) -> str:
        return named(f"{self.setting}_{what}")


def _readable(path: Path, setting: str) -> str:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as err:
        raise ValueError(f"{named(setting)}: {path} cannot be read: {err.strerror}") from None
    return str(path)


def causes(err: BaseException) -> Iterator[BaseException]:
    """An error and its causes, nearest first. Clients wrap the error that names the fault."""
    seen: set[int] = set()
    waiting: list[object] = [err]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and id(one) not in seen:
            seen.add(id(one))
            yield one
            # elastic_transport keeps causes in `errors`, aiohttp in `certificate_error`.
            waiting += [one.__cause__, one.__context__, getattr(one, "certificate_error", None)]
            waiting += getattr(one, "errors", ())


def handshake_failure(err: BaseException, setting: str, server: str, where: str) -> str | None:
    """Why a handshake failed, and the setting to check; None: the error has another cause.

    Args:
        setting: The settings' prefix, `kafka` or `elasticsearch`.
        server: The server's name, `Kafka`; where: the setting of its address.
    """
    for one in causes(err):
        # aiohttp's errors of these classes have no reason; it is in their cause.
        if isinstance(one, ssl.SSLCertVerificationError) and hasattr(one, "verify_code"):
            return _distrust(one, f"PAGEWIRE_{setting.upper()}", server, where)
        if isinstance(one, ssl.SSLError) and hasattr(one, "reason"):
            return _alert(one, f"PAGEWIRE_{setting.upper()}", server, where)
    return None


def _distrust(err: ssl.SSLCertVerificationError, prefix: str, server: str, where: str) -> str:
    code, said = err.verify_code, err.verify_message
    if code in OTHER_NAME:
        return (
            f"the certificate of {server} is for another name ({said}): {where} must name the server as its "
            "certificate does"
        )
    if code in UNKNOWN_ISSUER:
        return (
            f"the certificate of {server} is from an authority that we do not trust ({said}): {prefix}_CA must be the "
            "file of the one that signed it"
        )
    if code in (EXPIRED, NOT_YET_VALID):
        return (
            f"the certificate of {server}, or of its authority ({prefix}_CA), is not valid now ({said}): somebody has "
            "to renew it, or a clock is wrong"
        )
    return f"the certificate of {server} is not good ({said}): is {prefix}_CA the file of the authority that signed it?"


def _alert(err: ssl.SSLError, prefix: str, server: str, where: str) -> str:
    reason = err.reason or str(err)
    if "ALERT" in reason and any(word in reason for word in ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")):
        return (
            f"{server} refuses our certificate, or wants one and got none ({reason}): {prefix}_CERTIFICATE and "
            f"{prefix}_CERTIFICATE_KEY, signed by an authority that {server} trusts"
        )
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return f"{server} speaks no TLS at this address ({reason}): {where}, is it the right port?"
    return f"TLS to {server} fails ({reason}): {where}, {prefix}_CA"
