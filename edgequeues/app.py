"""The composition root: the only module that constructs everything."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from edgequeues.backups import Backups
from edgequeues.blobs.store import BlobStore
from edgequeues.control import Control
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.core.signatures import verifier
from edgequeues.dashboard.views import make_pages
from edgequeues.http import admin, binding, blobs, cloudflare, dxos, hooks, ingest, native, observing
from edgequeues.http.auth import Auth
from edgequeues.http.cloudflare_codec import Wire
from edgequeues.http.hook_body import Sources
from edgequeues.http.hooks import Ingress
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.ingest import Doors, Twilio
from edgequeues.http.observing import NOBODY_WATCHES, Watchers
from edgequeues.http.scrape import Scrape
from edgequeues.http.server import Server
from edgequeues.http.signins import SignIns
from edgequeues.http.waits import Waits
from edgequeues.metrics import Metrics
from edgequeues.openapi import serving as openapi
from edgequeues.router import Router
from edgequeues.settings import Settings, SettingsError
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.check import Allowed
from edgequeues.spec.files import SpecError, given
from edgequeues.specs import Specs
from edgequeues.workers.blobs import Blobs, Rules, open_sweeper
from edgequeues.workers.executors import Executors, open_executors
from edgequeues.workers.mailroom import Bounds, Inbox, Mailroom
from edgequeues.workers.media import Media, open_media
from edgequeues.workers.runner import open_runner
from shards.clock import Clock, SystemClock
from shards.disk import Disk, ThreadDisk
from shards.limits import Limits
from shards.namespace import Namespace, open_namespace

DAY_S = 86_400
DAY_MS = DAY_S * 1_000


@asynccontextmanager
async def open_app(
    data: Path,
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    limits: Limits | None = None,
    randomness: random.Random | None = None,
    environment: Mapping[str, str] | None = None,
    network: httpx.AsyncBaseTransport | None = None,
    watchers: Watchers = NOBODY_WATCHES,
) -> AsyncIterator[Server]:
    """Open the data folder, made if absent, and yield the ASGI app over it; leaving drains and closes it.

    Defaults are those of the settings, the real clock, disk, randomness and environment; network: what media are
    fetched over, in tests. watchers: of what it is asked. Raises what `shards.namespace.open_namespace` raises,
    ControlError, SpecError for specs that cannot hold, and Unprotected for a server that everybody could use.
    """
    chosen = settings or Settings()
    clock, disk = clock or SystemClock(), disk or ThreadDisk()
    environment = os.environ if environment is None else environment
    metrics = Metrics()
    opened = _open_spaces(data, clock, disk, limits, randomness, watchers, metrics)
    async with opened as namespace:
        with Control.open(data) as control:
            auth = _auth(chosen, control, clock)
            control.never_wait()
            pace = chosen.stranger_spaces_per_minute
            router = Router(namespace, spaces_max=chosen.spaces_max, stranger_spaces_per_minute=pace)
            await router.copies.clear()
            allowed = _allowed(chosen, environment)
            objects = _blobs(chosen, router, data, disk, environment)
            twilio = _twilio(chosen, environment)
            specs = Specs(control, router, clock, allowed)
            await _apply(specs, chosen.spec, allowed)
            backups = Backups(router, specs, data, disk)
            async with (
                _open_commands(chosen, allowed, router) as executors,
                open_sweeper(objects),
                open_media(chosen.ingest_media_hosts, network) as media,
            ):
                mailroom = _mailroom(chosen, router, objects, media, clock, disk, metrics)
                doors = _doors(chosen, mailroom, clock, twilio)
                yield _server(
                    chosen, router, specs, backups, executors, clock, auth, objects, doors, metrics, watchers
                )


def _open_spaces(
    data: Path,
    clock: Clock,
    disk: Disk,
    limits: Limits | None,
    randomness: random.Random | None,
    watchers: Watchers,
    metrics: Metrics,
) -> AbstractAsyncContextManager[Namespace[SpaceShard]]:
    """The spaces, watched and measured."""
    return open_namespace(
        SpaceShard,
        data,
        clock=clock,
        disk=disk,
        limits=limits,
        randomness=randomness,
        tracer=watchers.called,
        meter=metrics.engine,
    )


@asynccontextmanager
async def _open_commands(settings: Settings, allowed: Allowed, router: Router) -> AsyncIterator[Executors]:
    """What carries commands out."""
    processes = settings.commands_processes
    async with (
        open_executors(allowed, processes=processes) as executors,
        open_runner(router, executors, processes=processes, requests=settings.commands_requests),
    ):
        yield executors


def _server(
    settings: Settings,
    router: Router,
    specs: Specs,
    backups: Backups,
    executors: Executors,
    clock: Clock,
    auth: Auth,
    objects: Blobs,
    doors: Doors,
    metrics: Metrics,
    watchers: Watchers,
) -> Server:
    waits = Waits()
    dialects = [
        native.dialect(router, waits, specs, body_bytes_max=settings.body_bytes_max),
        dxos.dialect(router, waits, body_bytes_max=settings.body_bytes_max),
        admin.dialect(router, waits, specs, backups),
        cloudflare.dialect(router, waits, wire=_wire(settings)),
        binding.dialect(router, Scrape(router, metrics, settings.metrics_queues_max)),
        hooks.dialect(_ingress(settings, specs, router, executors, clock)),
        blobs.dialect(objects, auth, _outside(settings)),
        ingest.dialect(doors),
    ]
    return Server(
        [*dialects, openapi.dialect(dialects)],
        make_pages(auth),
        waits,
        auth=auth,
        hosts=Hosts(settings.host, _names(settings)),
        origins=Origins(settings.cors_origins),
        watchers=watchers.and_also(observing.counting(metrics.requests)),
    )


def _auth(settings: Settings, control: Control, clock: Clock) -> Auth:
    """Who judges callers. Raises Unprotected, ControlError."""
    secure = _outside(settings).startswith("https:")
    signins = SignIns(lambda: secrets.token_urlsafe(32), secure=secure)
    return Auth(settings.auth, settings.host, control, clock, insecure=settings.insecure, signins=signins)


def _names(settings: Settings) -> list[str]:
    """Names besides loopback that requests may be for; that by which the server is reached from outside is one."""
    outside = urlsplit(settings.public_base_url).netloc
    return [*settings.allowed_hosts, *([outside] if outside else [])]


def _allowed(settings: Settings, environment: Mapping[str, str]) -> Allowed:
    """What specs may use of the server's surroundings."""
    return Allowed(
        modules=tuple(settings.commands_modules),
        http_hosts=tuple(settings.commands_http_allow),
        secrets=tuple(settings.secrets_env),
        environment=environment,
    )


async def _apply(specs: Specs, files: Sequence[str], allowed: Allowed) -> None:
    """Have the specs of files hold. Raises SpecError, before any of them holds where that can be told from them."""
    for one in [given(text, allowed) for text in files]:
        try:
            await specs.apply(one.space, one.spec, one.origin)
        except EdgeQueuesError as error:
            raise SpecError(f"{one.origin}: {error}") from error


def _ingress(settings: Settings, specs: Specs, router: Router, executors: Executors, clock: Clock) -> Ingress:
    """What webhooks have to do with."""
    return Ingress(
        specs,
        router,
        executors,
        clock,
        Sources(settings.trusted_proxies),
        settings.hook_body_bytes_max,
        _outside(settings),
    )


def _outside(settings: Settings) -> str:
    """Under which address the server is reached from outside; a scheme alone: the host is as requests say."""
    return settings.public_base_url.rstrip("/") or ("https" if settings.cert else "http") + "://"


def _mailroom(
    settings: Settings,
    router: Router,
    objects: Blobs,
    media: Media,
    clock: Clock,
    disk: Disk,
    metrics: Metrics,
) -> Mailroom:
    """What takes mails and text messages in."""
    bounds = Bounds(
        settings.ingest_attachment_bytes_max,
        settings.ingest_media_files_max,
        settings.ingest_media_file_bytes_max,
        settings.ingest_media_bytes_max,
    )
    inbox = Inbox(settings.ingest_space, settings.ingest_queue)
    return Mailroom(inbox, router, objects, media, clock, disk, bounds, metrics)


def _twilio(settings: Settings, environment: Mapping[str, str]) -> Twilio:
    """How Twilio is known. Raises SettingsError for a token that cannot be one."""
    name = settings.ingest_sms_token_env
    token = environment.get(name, "")
    try:
        check = verifier("twilio", header="X-Twilio-Signature", secrets=[token]) if token else None
    except ValueError as error:
        raise SettingsError(f"environment: {name}: {error}") from error
    return Twilio(name, token, check, settings.ingest_sms_account)


def _doors(settings: Settings, mailroom: Mailroom, clock: Clock, twilio: Twilio) -> Doors:
    """Where mails and text messages come in."""
    mail, form = settings.ingest_email_bytes_max, settings.hook_body_bytes_max
    return Doors(mailroom, twilio, clock, mail, form, _outside(settings))


def _blobs(
    settings: Settings, router: Router, data: Path, disk: Disk, environment: Mapping[str, str]
) -> Blobs:
    """The object store; its backend is opened by the first blob. Raises SettingsError without credentials."""
    rules = Rules(
        settings.blobs_types,
        settings.blobs_file_bytes_max,
        settings.blobs_retention_days * DAY_MS,
        settings.blobs_link_days * DAY_S,
    )
    base = _outside(settings)
    if base.endswith("//"):
        base += f"{settings.host}:{settings.port}"
    return Blobs(router, _backend(settings, data, disk, environment), disk, rules, base)


def _backend(
    settings: Settings, data: Path, disk: Disk, environment: Mapping[str, str]
) -> Callable[[], Awaitable[BlobStore]]:
    """What opens the backend of the object store. Raises SettingsError."""
    if settings.blobs_backend == "folder":

        async def folder() -> BlobStore:
            from edgequeues.blobs.folder import open_folder

            return await open_folder(data / "blobs", disk)

        return folder
    key_id, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if not key_id or not secret:
        raise SettingsError(
            "environment: blobs lie in S3, so AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set"
        )

    async def s3() -> BlobStore:
        from edgequeues.blobs.s3 import Bucket, S3Blobs

        place = (settings.blobs_s3_endpoint, settings.blobs_s3_bucket, settings.blobs_s3_region)
        return S3Blobs(Bucket(*place, key_id, secret, environment.get("AWS_SESSION_TOKEN", "")), disk)

    return s3


def _wire(settings: Settings) -> Wire:
    """What Cloudflare's documents leave open, as set."""
    return Wire(
        json_body=settings.cloudflare_json_body,
        max_retries=settings.cloudflare_max_retries,
        backlog=settings.cloudflare_backlog,
        content_type=settings.cloudflare_content_type,
        batch_size=settings.cloudflare_batch_size,
    )
