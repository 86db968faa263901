// The lines of a queue: ordering keys whose messages wait for the first of them, and what keeps that one.

import { dxn, path } from "../api.js";
import { confirmed, doing } from "../dialogs.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { crumbs, messageAt, queueAt, queueNav } from "../places.js";
import { badge, button, choice, field, pager, table, time } from "../widgets.js";

const SHOWN = 20; // lines a page; of each, the first message is looked at
const AT_ONCE = 4;

/** The page. */
export async function lines(context) {
  const { api, params: { space, queue }, query, go, again } = context;
  const address = path`/v1/${dxn(space, queue)}`;
  const ordered = (await api.get(`${address}/consumers`)).consumers.filter((one) => one.config.ordering !== "unordered");
  const page = { title: `Lines of ${queue}`, crumbs: crumbs(space, queue) };
  const nav = queueNav(space, queue, "lines");
  if (!ordered.length) {
    const why = "No consumer of this queue keeps an order (`ordering` is `fifo` or `per_key`), so nothing waits for anything.";
    return { ...page, nodes: [nav, h("p", {}, why)] };
  }
  const names = ordered.map((one) => one.name);
  const consumer = names.includes(query.get("consumer")) ? query.get("consumer") : names[0];
  const after = query.get("after");
  const found = await api.get(`${address}/lines`, { consumer, after, limit: SHOWN });
  const rows = await heads(api, address, consumer, found.lines);
  const list = table({
    caption: "The longest lines of those that were looked at come first", key: (row) => row.key,
    empty: "Nothing waits behind another message.", columns: columns(context, address, consumer),
  });
  list.update(rows);
  const select = choice("consumer", names.map((one) => [one, one]), consumer);
  select.addEventListener("change", () => go(queueAt(space, queue, "lines", { consumer: select.value })));
  const at = (key) => queueAt(space, queue, "lines", { consumer, after: key });
  const pages = pager({ first: after && at(null), next: found.resume === null ? null : at(found.resume) });
  const tools = h("div", { class: "tools" }, names.length > 1 && field("Consumer", select), button("Look again", again));
  return { ...page, nodes: [nav, tools, list.element, pages] };
}

/** The lines with the first message of each, and why that one is not delivered. */
async function heads(api, address, consumer, found) {
  const rows = found.map((line) => ({ ...line, head: null, why: null }));
  const left = [...rows];
  const worker = async () => {
    for (let row = left.shift(); row; row = left.shift()) {
      const peeked = await api.get(`${address}/peek`, { consumer, after: row.position - 1, limit: 1 });
      row.head = peeked.messages.find((one) => one.position === row.position) ?? null;
      if (row.head === null) continue; // it was finished in the meantime
      const told = await api.get(`${address}/explain`, { id: row.head.id }).catch((error) => missing(error));
      row.why = told?.consumers.find((one) => one.consumer === consumer) ?? null;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return rows;
}

function missing(error) {
  if (error.status !== 404) throw error;
  return null;
}

function columns({ api, params: { space, queue }, say, again }, address, consumer) {
  async function skip(event, row) {
    const pressed = event.currentTarget;
    const sure = await confirmed({
      title: "Give this message up?", action: "Skip it", danger: true,
      text: `${row.head.id} becomes a dead letter with reason "skipped", unless a worker has it now, and its line goes on.`,
    });
    if (!sure) return;
    await doing({ currentTarget: pressed }, say, async () => {
      await api.post(`${address}/skip`, { id: row.head.id, consumer });
      await again();
      return `${row.head.id} was given up; its line goes on.`;
    });
  }
  const hurry = (event, row) => doing(event, say, async () => {
    await api.post(`${address}/hurry`, { id: row.head.id, consumer });
    await again();
    return `${row.head.id} is ready now.`;
  });
  const named = (label, row) => ({ "aria-label": `${label} the first message of ${row.key || "the queue"}` });
  const actions = (row) => h("div", { class: "buttons" },
    ["scheduled", "backoff"].includes(row.state) && button("Retry now", (event) => hurry(event, row), named("Retry now", row)),
    row.state !== "leased" && button("Skip …", (event) => skip(event, row), named("Skip", row)));
  return [
    { title: "Key", heading: true, cell: (row) => row.key || "the whole queue" },
    { title: "Waiting", number: true, cell: (row) => count(row.waiting) },
    { title: "First message", cell: (row) => row.head ? h("a", { class: "mono", href: messageAt(space, queue, row.head.id) }, row.head.id) : "finished just now" },
    { title: "State", cell: (row) => badge(row.state) },
    { title: "Attempts", number: true, cell: (row) => row.attempts },
    { title: "Blocked since", cell: (row) => time(row.why?.history.length ? row.why.history[0].ended : null) },
    { title: "Until", cell: (row) => time(row.due) },
    { title: "Last error", cell: (row) => h("span", { class: "wrap" }, row.why?.last_error || "–") },
    { title: "Actions", cell: (row) => row.head && actions(row) },
  ];
}
