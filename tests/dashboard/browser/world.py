"""What the pages are looked at with: queues in every state, dead letters, lines, sessions, a webhook."""

from __future__ import annotations

from .site import VARIABLE, Site

World = dict[str, str]

PAGES = (
    "#/spaces",
    "#/spaces/demo",
    "#/spaces/demo/queues/orders",
    "#/spaces/demo/queues/orders/messages",
    "#/spaces/demo/queues/orders/messages/{message}",
    "#/spaces/demo/queues/orders/dead-letters",
    "#/spaces/demo/queues/orders/dead-letters?error=nothing+like+this",
    "#/spaces/demo/queues/orders/dead-letters/{letter}",
    "#/spaces/demo/queues/mail/lines",
    "#/spaces/demo/queues/orders/lines",
    "#/spaces/demo/queues/chat/sessions",
    "#/spaces/demo/queues/orders/sessions",
    "#/spaces/demo/schedules",
    "#/spaces/demo/entities",
    "#/spaces/demo/specs",
    "#/spaces/demo/audit",
    "#/hooks",
    "#/help",
)

SHOP = {
    "version": 0,
    "app": "shop",
    "queues": {"payments": {"message_type": {"payload": {}}}},
    "webhooks": {
        "payment": {
            "verify": {"hmac": {"header": "x-hub-signature-256", "secret_envs": [VARIABLE]}},
            "queue": "payments",
        }
    },
}
NAMES = ("anna", "bert", "carla", "dora", "emil")
ERRORS = (
    "the address has no postcode",
    "the card was declined",
    "warehouse.example does not answer (timeout after 30 s)",
    "there is no such article: sku-4711",
)


def filled(site: Site) -> World:
    """Fill the space `demo`, the same each time; return what pages are called with."""
    for number in range(12):
        order = {
            "order": f"o-{1001 + number}",
            "customer": NAMES[number % 5],
            "total_cents": 1990 + 310 * number,
        }
        site.push("orders", {"data": order, "key": NAMES[number % 5], "type": "order"})
        if number < 8:
            site.fail("orders", error=ERRORS[number % len(ERRORS)])
    site.push("orders", {"data": {"order": "o-2001"}, "delay_ms": 3_600_000})
    rules = {"ordering": "per_key", "backoff": {"initial_ms": 3_600_000, "max_ms": 3_600_000}}
    site.ask("PUT", "/v1/dxn:queue:demo:mail/config", {"profile": "work", "consumer": rules})
    site.push(
        "mail",
        *(
            {"data": {"to": f"{name}@example.com", "n": n}, "key": name}
            for name in ("anna", "bert")
            for n in range(4)
        ),
    )
    site.fail("mail", error="450 mailbox is full", permanent=False)
    site.push("reports", *({"data": {"page": n}} for n in range(40)))
    for name, texts in (
        ("telegram-17", ("hello?", "are you there?", "hm")),
        ("telegram-23", ("status please",)),
    ):
        for text in texts:
            message = {"session_id": name, "origin": "telegram", "content": text, "actor_name": "Anna"}
            site.ask("POST", "/v1/dxn:queue:demo:chat/inbound", message)
    site.fail("chat", error="the session does not answer", permanent=False, batch=1)
    site.ask("PATCH", "/v1/dxn:queue:demo:reports/config", {"paused": True})
    site.ask("PUT", "/v1/spaces/demo/specs/shop", SHOP)
    for number in (1, 2, 3, 3):
        site.call("demo/payment", {"payment": number})
    site.call("demo/payment", {"payment": 4}, signed=False)
    return {"letter": site.letters("orders")[0]["id"], "message": site.peek("orders")[0]["id"]}
