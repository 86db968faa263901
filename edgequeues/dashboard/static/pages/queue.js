// One queue: how it is doing now, who works it, what is in their hands, and its settings.

import { dxn, path, query as queryOf } from "../api.js";
import { h, replace } from "../dom.js";
import { bytes, count, counted, rate, span, spanMs, words } from "../format.js";
import { crumbs, messageAt, queueAt, queueNav, spaceAt } from "../places.js";
import { amount, badge, facts, sparkline, table, tiles, time } from "../widgets.js";
import { pushing } from "./pushing.js";
import { LIVE, pausing } from "./space.js";

const HELD = 20; // leases a consumer that are shown
const CONSUMERS = 10; // consumers whose leases are shown
const STATES = ["ready", "leased", "backoff", "scheduled", "waiting"];
const TOTALS = ["in", "attempts", "acked", "retried", "lapsed", "released", "exhausted", "permanent", "skipped", "expired", "cancelled"];

/** The page. */
export async function queue(context) {
  const { params, api, follow, signal, say } = context;
  const address = dxn(params.space, params.queue);
  const now = await api.get(path`/admin/queues/${params.queue}`, { tenant_id: params.space });
  const [stats, { consumers }] = await Promise.all([
    api.get(path`/v1/${address}/stats`), api.get(path`/v1/${address}/consumers`),
  ]);

  const state = h("span", { class: "live" });
  const doings = h("div", { class: "buttons" });
  const counts = tiles(tilesOf(params));
  const flow = h("div", { class: "big" });
  const rules = table(rulesTable());
  const totals = table(totalsTable());
  const held = table(heldTable(params));
  const ended = new AbortController();

  let paused = null;
  function show(one, workers) {
    if (paused !== one.paused) {
      const focused = doings.contains(document.activeElement);
      replace(doings, pausing(context, address, one.paused, one.name), one.paused && badge("paused"));
      if (focused) doings.firstChild.focus();
    }
    paused = one.paused;
    counts.update(numbers(one));
    replace(flow, flows(one.rates));
    rules.update(workers);
    totals.update(workers);
  }

  // Leases are looked at after what the stream tells, one look at a time, and only where there are some.
  let looking = false;
  async function look(workers) {
    if (looking) return;
    looking = true;
    try {
      const busy = workers.filter((one) => one.leased).slice(0, CONSUMERS);
      const asked = busy.map((one) => api.get(path`/v1/${address}/peek`, { consumer: one.name, state: "leased", limit: HELD }));
      const found = await Promise.all(asked);
      held.update(found.flatMap((page, index) => page.messages.map((one) => ({ ...one, consumer: busy[index].name }))));
    } catch (error) {
      if (!signal.aborted) say(`The leases could not be read. ${error.message}`, true);
    } finally {
      looking = false;
    }
  }

  show(now, consumers);
  await look(consumers);
  follow(`${path`/admin/queues/${params.queue}/live`}${queryOf({ tenant_id: params.space })}`, {
    queue: (one) => {
      show(one, one.consumers);
      look(one.consumers);
    },
    gone: () => {
      ended.abort();
      state.dataset.state = "waiting";
      state.textContent = "This queue was removed: what is shown is how it was";
    },
  }, (seen) => {
    state.textContent = LIVE[seen];
    state.dataset.state = seen;
  }, AbortSignal.any([signal, ended.signal]));

  const nodes = [
    queueNav(params.space, params.queue, ""), h("div", { class: "tools" }, doings, state), counts.element, flow,
    h("h2", {}, "Consumers"), rules.element, totals.element,
    h("h2", {}, "Leases in hand"), held.element,
    h("h2", {}, "Settings"), settings(params, stats),
    pushing(context, address, stats.config.kind),
  ];
  return { title: stats.config.name ?? stats.id, crumbs: crumbs(params.space), nodes };
}

function tilesOf(params) {
  const at = (asked) => queueAt(params.space, params.queue, "messages", asked);
  return [
    ...STATES.map((state) => ({ name: state, state, href: at({ state }) })),
    { name: "Entries", href: at({}) },
    { name: "Oldest ready" },
    { name: "Dead letters", href: queueAt(params.space, params.queue, "dead-letters") },
  ];
}

function numbers(one) {
  return {
    ...Object.fromEntries(STATES.map((state) => [state, count(one.states[state])])),
    Entries: count(one.entries),
    "Oldest ready": span(one.oldest_ready_age_seconds),
    "Dead letters": count(one.dead_letters),
  };
}

function flows(rates) {
  const one = (word, numbers) => [word, [
    sparkline(numbers, `${word} in the last 60 s: ${rate(numbers)} on average, ${count(Math.max(...numbers))} in a second at most`),
    h("span", { class: "figure" }, `${rate(numbers)} over 60 s`),
  ]];
  return facts([one("Pushed", rates.in), one("Acked", rates.out)]);
}

function rulesTable() {
  const state = (name) => ({ title: words(name), number: true, value: (row) => row[name], cell: (row) => amount(row[name]) });
  return {
    caption: "Rules, and what is in which state",
    key: (row) => row.name,
    empty: "No consumer works this queue, so nothing is handed out. It is read as a log.",
    columns: [
      { title: "Consumer", heading: true, value: (row) => [row.name, row.filling], cell: (row) => [row.name, row.filling && " (still given what was there before it)"] },
      { title: "Order", value: (row) => row.config.ordering, cell: (row) => row.config.ordering.replace("_", " ") },
      { title: "Lease", value: (row) => row.config.lease_ms, cell: (row) => spanMs(row.config.lease_ms) },
      { title: "Batch", number: true, value: (row) => row.config.batch, cell: (row) => row.config.batch },
      { title: "Attempts", value: (row) => row.config.attempts_max, cell: (row) => row.config.attempts_max ?? "no end" },
      { title: "Back-off", value: (row) => row.config.backoff, cell: (row) => backoff(row.config.backoff) },
      { title: "Dead letters", value: (row) => row.config.dead_letters, cell: (row) => letters(row.config.dead_letters) },
      ...STATES.map(state),
      { title: "Oldest ready", number: true, value: (row) => row.oldest_ready_age_ms, cell: (row) => spanMs(row.oldest_ready_age_ms) },
    ],
  };
}

function totalsTable() {
  return {
    caption: "Totals since the consumer was made",
    key: (row) => row.name,
    empty: "",
    columns: [
      { title: "Consumer", heading: true, value: (row) => row.name, cell: (row) => row.name },
      ...TOTALS.map((name) => ({ title: words(name), number: true, value: (row) => row[`total_${name}`], cell: (row) => amount(row[`total_${name}`]) })),
    ],
  };
}

function heldTable(params) {
  return {
    caption: `The first ${HELD} of each consumer`,
    key: (row) => `${row.consumer}/${row.id}`,
    empty: "Nobody holds a message now.",
    columns: [
      { title: "Message", heading: true, value: (row) => row.id, cell: (row) => h("a", { class: "mono", href: messageAt(params.space, params.queue, row.id) }, row.id) },
      { title: "Consumer", value: (row) => row.consumer, cell: (row) => row.consumer },
      { title: "Worker", value: (row) => row.worker, cell: (row) => row.worker ?? h("span", { class: "quiet" }, "without a name") },
      { title: "Attempt", number: true, value: (row) => row.attempts, cell: (row) => row.attempts },
      { title: "Lease ends", value: (row) => row.due, cell: (row) => time(row.due) },
      { title: "Key", value: (row) => row.key, cell: (row) => row.key ?? "–" },
    ],
  };
}

const letters = (to) => (to === null ? "its own queue" : to || "nowhere, only counted");

function backoff({ initial_ms: initial, max_ms: max, list_ms: list, jitter }) {
  const waits = list.length ? list.map(spanMs).join(", ") : initial ? `${spanMs(initial)} doubling to ${spanMs(max)}` : "none";
  return jitter ? `${waits}, up to ${Math.round(jitter * 100)} % shorter` : waits;
}

function settings(params, { id, config, created, bytes: size, oldest }) {
  const none = (value, said) => (value === null ? "none" : said(value));
  return facts([
    ["Id", h("span", { class: "mono" }, id)],
    ["Kind", config.kind],
    ["Made", time(created)],
    ["Data stored", bytes(size)],
    ["Oldest entry", time(oldest)],
    ["Entries expire after", none(config.max_age_ms, spanMs)],
    ["Entries kept", config.max_entries === null ? "all" : count(config.max_entries)],
    ["Depth limit", none(config.depth_max, (n) => counted(n, "message"))],
    ["Delay", spanMs(config.delay_ms)],
    ["After the last ack", config.on_ack === "keep" ? "entries are kept" : config.retain_acked_ms ? `deleted ${spanMs(config.retain_acked_ms)} later` : "deleted"],
    ["Same id, other data", config.mutable ? "replaces the entry" : "is refused"],
    ["Changes", h("a", { href: spaceAt(params.space, "audit", { queue: params.queue }) }, "who did what to it")],
    ["Sessions", config.sessions ? "keys are sessions" : "no"],
  ]);
}
