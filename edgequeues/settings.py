"""Every setting of the server: one Struct, checked once. Where it is fed from is in `edgequeues.settings_sources`."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from edgequeues.core.errors import InvalidId
from edgequeues.core.hostnames import LOCAL_ORIGINS, is_host, is_origin
from edgequeues.core.ids import check_name, check_space

MIB = 1024 * 1024
MEDIA_HOSTS = ("api.twilio.com", "mms.twiliocdn.com", "media.twiliocdn.com", "mcs.us1.twilio.com")
BLOB_TYPES = (
    *("image/*", "audio/*", "video/*", "application/pdf", "application/rtf", "application/json"),
    *("text/plain", "text/html", "text/csv", "text/calendar", "text/vcard", "text/x-vcard", "message/rfc822"),
    *("application/zip", "application/gzip", "application/octet-stream", "application/pkcs7-signature"),
    *("application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"),
    *("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    *("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
    *("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
    *("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.spreadsheet"),
)
_MEDIA_PATTERN = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


class SettingsError(Exception):
    """A setting that cannot be used. The message names where it was given, which it is, and what would do."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one server. The descriptions are what --help and the docs print."""

    data: Annotated[str, Meta(min_length=1, description="Folder of the data; made where it is missing.")] = (
        "data"
    )
    host: Annotated[
        str,
        Meta(
            min_length=1,
            description="Address to listen on. One that other machines reach needs a token, or `insecure`.",
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")] = 8700
    allowed_hosts: Annotated[
        list[str],
        Meta(
            description="Names besides loopback that a request's Host header may carry, port included, "
            "as when a proxy on this machine passes its own name on."
        ),
    ] = []
    cors_origins: Annotated[
        list[str],
        Meta(
            description="Origins whose web pages may call the server; a port may be `*`, `*` alone means all pages. "
            "Pages of the server itself always may."
        ),
    ] = msgspec.field(default_factory=lambda: list(LOCAL_ORIGINS))
    auth: Annotated[
        Literal["auto", "required", "off"],
        Meta(
            description="Who needs a token. `auto`: everybody, once there is a token or other machines reach the "
            "server; `off`: nobody."
        ),
    ] = "auto"
    insecure: Annotated[
        bool,
        Meta(description="Listen where other machines reach the server, though everybody may do everything."),
    ] = False
    cert: Annotated[
        str,
        Meta(description="PEM file with the certificate chain; with it, and `key`, the server speaks TLS."),
    ] = ""
    key: Annotated[str, Meta(description="PEM file with the private key of the certificate.")] = ""
    front: Annotated[
        Literal["lane", "hypercorn"],
        Meta(
            description="What reads requests: the fast `lane`, which leaves WebSockets to Hypercorn, or `hypercorn` "
            "alone."
        ),
    ] = "lane"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="What is worth a line on stderr: this and everything graver."),
    ] = "info"
    log_format: Annotated[
        Literal["auto", "json", "text"],
        Meta(
            description="How lines look: JSON, an object a line, or text. `auto`: text on a terminal, else JSON."
        ),
    ] = "auto"
    log_requests: Annotated[
        Literal["all", "errors", "off"],
        Meta(
            description="Which requests get a line: `all`, or those answered with 400 and above (`errors`). It tells "
            "the route, the status, how long it took and whose token it was, never a path or a body."
        ),
    ] = "all"
    tracing: Annotated[
        bool,
        Meta(
            description="Send spans of requests, turns and flushes by OpenTelemetry; where to, its own variables "
            "say, as OTEL_EXPORTER_OTLP_ENDPOINT. Needs `edgequeues[otel]`."
        ),
    ] = False
    metrics_queues_max: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="Queues that `/metrics` tells of, those of spaces that are open; more are left out.",
        ),
    ] = 200
    connections_max: Annotated[
        int, Meta(ge=1, le=100_000, description="Connections at once; more are turned away with 503.")
    ] = 4096
    shutdown_grace_s: Annotated[
        float,
        Meta(
            ge=0, le=3600, description="A server that is stopping gives requests under way so many seconds."
        ),
    ] = 10.0
    body_bytes_max: Annotated[
        int,
        Meta(
            ge=1024,
            le=1024 * MIB,
            description="Bytes a request's body may have; a streamed append has no end, only lines that do.",
        ),
    ] = 16 * MIB
    stranger_spaces_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            description="Spaces that requests without a token, where they may, make in a minute at most.",
        ),
    ] = 60
    cloudflare_json_body: Annotated[
        Literal["base64", "plain"],
        Meta(
            description="How clients of Cloudflare's API are handed JSON bodies: in base64, or as the text itself."
        ),
    ] = "base64"
    cloudflare_max_retries: Annotated[
        Literal["retries", "deliveries"],
        Meta(
            description="What `max_retries` of a Cloudflare consumer counts: `retries` after the first delivery, or "
            "all `deliveries`."
        ),
    ] = "retries"
    cloudflare_backlog: Annotated[
        Literal["unfinished", "ready"],
        Meta(
            description="What Cloudflare's `backlog_count` counts: all that is unfinished, delayed and leased "
            "included, or only what can be pulled now."
        ),
    ] = "unfinished"
    cloudflare_content_type: Annotated[
        Literal["json", "text"],
        Meta(description="Content type of what is pushed over Cloudflare's API without one."),
    ] = "json"
    cloudflare_batch_size: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="Messages a pull gives of a Cloudflare consumer whose settings do not say.",
        ),
    ] = 5
    spec: Annotated[
        list[str],
        Meta(
            description="Files of specs that hold from the start, each with `=SPACE`, or in the space of its app."
        ),
    ] = []
    secrets_env: Annotated[
        list[str],
        Meta(description="Environment variables whose values specs may use as secrets, by name."),
    ] = []
    commands_modules: Annotated[
        list[str], Meta(description="Python modules whose functions specs may name as commands.")
    ] = []
    commands_http_allow: Annotated[
        list[str],
        Meta(
            description="Hosts that commands of specs may call, port included where it is named; and networks, as "
            "`10.0.0.0/8`, whose addresses these hosts may have although they are not public."
        ),
    ] = []
    commands_processes: Annotated[
        int,
        Meta(ge=1, le=64, description="Python functions that run at once as commands, each in its process."),
    ] = 2
    commands_requests: Annotated[
        int, Meta(ge=1, le=1_000, description="HTTP requests that are under way at once as commands.")
    ] = 16
    public_base_url: Annotated[
        str,
        Meta(
            description="How the server is reached from outside, as `https://hooks.example.com`: a name that Host "
            "may carry, and what some webhooks sign. Without it, the Host header counts."
        ),
    ] = ""
    trusted_proxies: Annotated[
        list[str],
        Meta(description="Addresses and networks of proxies whose X-Forwarded-For is believed."),
    ] = []
    hook_body_bytes_max: Annotated[
        int,
        Meta(ge=1024, le=4 * MIB, description="Bytes a webhook's body may have, also when it is unpacked."),
    ] = MIB
    ingest_space: Annotated[
        str, Meta(min_length=1, description="The space that mails and text messages go to.")
    ] = "switchboard"
    ingest_queue: Annotated[
        str,
        Meta(
            min_length=1,
            description="The queue there that their events go to; the first makes it, of profile `switchboard`.",
        ),
    ] = "switchboard-inbox"
    ingest_email_bytes_max: Annotated[
        int, Meta(ge=1024, le=40 * MIB, description="Bytes a mail may have, attachments included.")
    ] = 40 * MIB
    ingest_attachment_bytes_max: Annotated[
        int,
        Meta(
            ge=1, le=40 * MIB, description="Bytes an attachment may have; the event goes without larger ones."
        ),
    ] = 25 * MIB
    ingest_sms_token_env: Annotated[
        str,
        Meta(
            min_length=1,
            description="Environment variable with the auth token of Twilio; without it, no text messages are taken.",
        ),
    ] = "TWILIO_AUTH_TOKEN"
    ingest_sms_account: Annotated[
        str,
        Meta(
            description="The account SID of Twilio whose messages are taken; without it, of any that signs."
        ),
    ] = ""
    ingest_media_hosts: Annotated[
        list[str],
        Meta(
            description="Hosts that media of text messages are fetched from, port included where it is not 443; "
            "`http://` before one: without TLS."
        ),
    ] = msgspec.field(default_factory=lambda: list(MEDIA_HOSTS))
    ingest_media_files_max: Annotated[
        int,
        Meta(
            ge=0, le=100, description="Media of a text message that are fetched; the event goes without more."
        ),
    ] = 10
    ingest_media_file_bytes_max: Annotated[
        int, Meta(ge=0, le=64 * MIB, description="Bytes one of them may have.")
    ] = 5_000_000
    ingest_media_bytes_max: Annotated[
        int, Meta(ge=0, le=64 * MIB, description="Bytes all of them may have together.")
    ] = 5_000_000
    blobs_backend: Annotated[
        Literal["folder", "s3"],
        Meta(
            description="Where blobs lie: below `data`, or in a bucket of S3, entered with AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and perhaps AWS_SESSION_TOKEN of the environment."
        ),
    ] = "folder"
    blobs_s3_endpoint: Annotated[
        str, Meta(description="Address of the S3 API, as `https://<account>.r2.cloudflarestorage.com`.")
    ] = ""
    blobs_s3_bucket: Annotated[str, Meta(description="The bucket that all blobs lie in.")] = ""
    blobs_s3_region: Annotated[str, Meta(min_length=1, description="Its region.")] = "auto"
    blobs_types: Annotated[
        list[str],
        Meta(
            description="Media types of blobs that are taken: `type/subtype`, or `type/*` for all of a kind."
        ),
    ] = msgspec.field(default_factory=lambda: list(BLOB_TYPES))
    blobs_file_bytes_max: Annotated[int, Meta(ge=1, le=64 * MIB, description="Bytes a blob may have.")] = (
        25 * MIB
    )
    blobs_retention_days: Annotated[
        int,
        Meta(
            ge=1,
            le=36_500,
            description="Days for which a blob is kept; one that a link leads to is kept until the link ends.",
        ),
    ] = 30
    blobs_link_days: Annotated[
        int,
        Meta(ge=1, le=30, description="Days for which a link to a blob lives, if nothing else is said."),
    ] = 7
    spaces_max: Annotated[
        int,
        Meta(ge=1, description="Spaces the folder may hold; the write that would make one more is refused."),
    ] = 100_000
    spaces_open_max: Annotated[
        int,
        Meta(
            ge=1, le=100_000, description="Spaces open at once; above it the least recently used is closed."
        ),
    ] = 512
    idle_close_s: Annotated[
        float,
        Meta(gt=0, description="A space nobody has used for so many seconds is closed until its next use."),
    ] = 60.0
    mailbox_max: Annotated[
        int,
        Meta(ge=1, description="Unanswered calls of one space; more are refused at once with `overloaded`."),
    ] = 1024
    wal_checkpoint_bytes: Annotated[
        int,
        Meta(
            ge=64 * 1024,
            description="A space's write-ahead log is copied into its database each time it has grown by this.",
        ),
    ] = 8 * MIB
    wal_bytes_max: Annotated[
        int,
        Meta(
            ge=MIB,
            description="While its write-ahead log is larger than this, a space's calls wait for the copy.",
        ),
    ] = 64 * MIB
    reserve_bytes: Annotated[
        int,
        Meta(ge=0, description="Room kept aside on the disk, so that deletes still work when it is full."),
    ] = 8 * MIB

    def __post_init__(self) -> None:
        if bool(self.cert) != bool(self.key):
            raise ValueError("cert and key: TLS needs both files; give both, or neither")
        for proxy in self.trusted_proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError as error:
                raise ValueError(f"trusted_proxies: {proxy!r} is no address or network: {error}") from error
        if self.public_base_url and not self.public_base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"public_base_url: {self.public_base_url!r} begins with neither http:// nor https://"
            )
        self._check_ingest()
        if self.blobs_backend == "s3" and not self.blobs_s3_bucket:
            raise ValueError("blobs_s3_bucket: blobs are to lie in S3, so name the bucket")
        if self.blobs_s3_endpoint and not self.blobs_s3_endpoint.startswith(("http://", "https://")):
            raise ValueError(
                f"blobs_s3_endpoint: {self.blobs_s3_endpoint!r} begins with neither http:// nor https://"
            )
        for media in self.blobs_types:
            if not _MEDIA_PATTERN.fullmatch(media):
                raise ValueError(
                    f"blobs_types: {media!r} is no type; write image/png, or image/* for all images"
                )
        for origin in self.cors_origins:
            if not is_origin(origin):
                raise ValueError(
                    f"cors_origins: {origin!r} is no origin; write https://app.example, http://localhost:* or *"
                )
        if self.wal_checkpoint_bytes > self.wal_bytes_max:
            raise ValueError(
                f"wal_checkpoint_bytes: {self.wal_checkpoint_bytes} is more than wal_bytes_max "
                f"({self.wal_bytes_max}), so the log would reach its limit before it is ever copied"
            )

    def _check_ingest(self) -> None:
        try:
            check_space(self.ingest_space)
            check_name(self.ingest_queue)
        except InvalidId as error:
            raise ValueError(f"ingest_space, ingest_queue: {error.detail}") from error
        for host in self.ingest_media_hosts:
            if not is_host(host):
                raise ValueError(f"ingest_media_hosts: {host!r} is no host; write api.twilio.com")
