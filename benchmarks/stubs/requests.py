"""Stands in for requests: what is asked for is a crawl of three pages, or a word."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

PAGE = "<h1>A page</h1><p>Of no content.</p>"
ANSWER = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(PAGE)}\r\n\r\n{PAGE}"
RECORD = (
    "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://example.org/\r\n"
    "Content-Type: application/http; msgtype=response\r\n"
    f"Content-Length: {len(ANSWER)}\r\n\r\n{ANSWER}\r\n\r\n"
)


@dataclass
class Response:
    """What has come."""

    content: bytes
    status_code: int = 200

    def raise_for_status(self) -> None:
        """All is well."""


def get(address: str, **_: object) -> Response:
    """A list of files for an address that ends in `.paths.gz`, pages for `.warc.gz`, else a word."""
    if address.endswith(".paths.gz"):
        return Response(gzip.compress(b"".join(b"crawl/%d.warc.gz\n" % number for number in range(3))))
    if address.endswith(".warc.gz"):
        return Response(gzip.compress(RECORD.encode()) * 12)
    return Response(b"stub")
