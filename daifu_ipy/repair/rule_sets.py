"""Rules with a name: what many runs need."""

from __future__ import annotations

import errno

from daifu_ipy.engine.repairs import Continue, Pass, Repair
from daifu_ipy.repair.memory import SAYING_SO
from daifu_ipy.repair.rule import Rule

_PASSING = "EAGAIN EINTR EIO EBUSY ESTALE ETIMEDOUT ECONNRESET ECONNREFUSED ECONNABORTED EPIPE ENETDOWN ENETUNREACH \
ENETRESET EHOSTDOWN EHOSTUNREACH EREMOTEIO ENOTCONN"
_ERRNO = "|".join(sorted({str(getattr(errno, name)) for name in _PASSING.split() if hasattr(errno, name)}))

_TRANSIENT: tuple[tuple[str, str | None], ...] = (
    (
        "ConnectionError | TimeoutError | Timeout | InterruptedError | BlockingIOError | ssl.SSLEOFError"
        " | http.client.IncompleteRead | http.client.BadStatusLine | requests.exceptions.ChunkedEncodingError"
        " | urllib3.exceptions.HTTPError | aiohttp.ClientConnectionError | aiohttp.ClientPayloadError"
        " | httpx.TransportError | httpcore.NetworkError | httpcore.TimeoutException"
        " | botocore.exceptions.HTTPClientError",
        None,
    ),
    ("OSError", rf"\[Errno ({_ERRNO})\]|timed out|Temporary failure in name resolution"),
    ("HTTPError | HTTPStatusError | HfHubHTTPError", r"^(\w+ [Ee]rror:? '?)?(408|425|429|500|502|503|504)\b"),
    ("botocore.exceptions.ClientError", "Throttl|SlowDown|RequestTimeout|InternalError|ServiceUnavailable"),
    ("sqlite3.OperationalError", "locked|busy"),
)

_BAD_ITEM = (
    "ValueError | TypeError | LookupError | ArithmeticError | AttributeError | AssertionError | RuntimeError | OSError"
    " | EOFError | struct.error | zlib.error | UnpicklingError | BadZipFile | TarError | LZMAError"
)
"""Not every exception: a name or module that is missing fails for every item."""

_RELEASE = '__import__("daifu_ipy.repair.memory", fromlist=["release"]).release()'

SETS: dict[str, tuple[Rule, ...]] = {
    "transient-io": tuple(
        Rule(error, message, limit=None, wait=1.0, backoff=2.0, in_a_row=5, name="transient-io")
        for error, message in _TRANSIENT
    ),
    "skip-item": (Rule(_BAD_ITEM, repair=Repair(then=Continue()), in_loop=True, limit=100, name="skip-item"),),
    "out-of-memory": (
        *(
            Rule(error, message, repair=Repair((_RELEASE,), Pass()), limit=None, in_a_row=1, name="out-of-memory")
            for error, message in SAYING_SO
        ),
        *(
            Rule(error, message, repair=Repair((_RELEASE,), Continue()), in_loop=True, limit=20, name="out-of-memory")
            for error, message in SAYING_SO
        ),
    ),
}
"""The name alone, with options if wanted, stands for them.

transient-io: what network, file system or a busy database may refuse once runs again, up to five times in a row, after
1, 2, 4, ... seconds. skip-item: the item that failed is left out, 100 times at most. out-of-memory: what can be
released is released, and the statement runs again once; then the item is left out, 20 times at most.
"""
