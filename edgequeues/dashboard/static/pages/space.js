// The queues of a space, as they are doing now.

import { dxn, path, query as queryOf } from "../api.js";
import { doing } from "../dialogs.js";
import { h, replace } from "../dom.js";
import { count, rate, span } from "../format.js";
import { crumbs, queueAt, spaceAt, spaceNav } from "../places.js";
import { amount, badge, button, field, onPause, pager, sparkline, table } from "../widgets.js";

const SHOWN = 50; // queues a page
const STATES = ["ready", "leased", "backoff", "scheduled", "waiting"];
export const LIVE = { live: "Live", connecting: "Connecting …", waiting: "Not live: the server is asked again soon" };

/** The page: a stream keeps it right, a part of a name narrows it, and pages keep it small. */
export async function space(context) {
  const { params, query, api, signal, follow, rewrite } = context;
  const asked = { tenant_id: params.space, limit: SHOWN, after: query.get("after"), name: query.get("name") };
  const filter = h("input", { type: "search", name: "name", value: asked.name ?? "", autocomplete: "off" });
  const list = table({
    caption: "Queues",
    key: (row) => row.id,
    empty: "No queue here. The first push to a name makes one: edgequeues push dxn:queue:SPACE:NAME",
    columns: columns(context),
  });
  const pages = h("div");
  const state = h("span", { class: "live" });
  let listening = null;

  function show(answer) {
    list.update(answer.queues);
    const { after, name } = asked;
    const next = answer.next ? spaceAt(params.space, "", { name, after: answer.next }) : null;
    replace(pages, pager({ first: after && spaceAt(params.space, "", { name }), next }));
  }
  function listen() {
    listening?.abort();
    listening = new AbortController();
    const here = AbortSignal.any([signal, listening.signal]);
    follow(`/admin/live${queryOf(asked)}`, { queues: show }, (now) => {
      state.textContent = LIVE[now];
      state.dataset.state = now;
    }, here);
  }

  onPause(filter, signal, () => {
    [asked.name, asked.after] = [filter.value.trim() || null, null];
    rewrite(spaceAt(params.space, "", { name: asked.name }));
    listen();
  });
  show(await api.get("/admin/queues", asked));
  listen();
  const backup = h("a", { href: path`/admin/spaces/${params.space}/backup`, download: `${params.space}.db` }, "Download a backup");
  const tools = h("div", { class: "tools" }, field("Filter by name", filter), state, backup);
  return { title: params.space, crumbs: crumbs(), nodes: [spaceNav(params.space, ""), tools, list.element, pages] };
}

function columns(context) {
  const states = STATES.map((state) => ({
    title: state[0].toUpperCase() + state.slice(1),
    number: true,
    value: (row) => row.states[state],
    cell: (row) => amount(row.states[state]),
  }));
  const flow = (title, way, said) => ({
    title,
    value: (row) => row.rates[way],
    cell: (row) => [
      sparkline(row.rates[way], `${said} in the last 60 s: ${rate(row.rates[way])} on average, ${count(Math.max(...row.rates[way]))} in a second at most`),
      h("span", { class: "figure" }, rate(row.rates[way])),
    ],
  });
  return [
    { title: "Queue", heading: true, value: (row) => [row.name, row.paused, row.kind], cell: (row) => [h("a", { href: queueAt(context.params.space, row.name) }, row.name), " ", row.paused && badge("paused")] },
    { title: "Kind", value: (row) => row.kind, cell: (row) => row.kind },
    { title: "Entries", number: true, value: (row) => row.entries, cell: (row) => amount(row.entries) },
    ...states,
    { title: "Oldest ready", number: true, value: (row) => row.oldest_ready_age_seconds, cell: (row) => span(row.oldest_ready_age_seconds) },
    flow("In", "in", "Pushed"),
    flow("Acked", "out", "Acked"),
    { title: "Action", value: (row) => row.paused, cell: (row) => pausing(context, params(context, row), row.paused, row.name) },
  ];
}

const params = (context, row) => dxn(context.params.space, row.name);

/**
 * A button that pauses a queue, or has it go on; nothing is lost by either, so it does not ask.
 * @param {{api: any, say: (text: string, failed?: boolean) => void}} context
 * @param {string} address the queue's DXN @param {boolean} paused @param {string} name
 */
export function pausing({ api, say }, address, paused, name) {
  const label = paused ? "Resume" : "Pause";
  return button(label, (event) => doing(event, say, async () => {
    await api.patch(path`/v1/${address}/config`, { paused: !paused });
    return paused ? `${name} goes on.` : `${name} is paused: nothing is handed out until it is resumed.`;
  }), { "aria-label": `${label} ${name}` });
}
