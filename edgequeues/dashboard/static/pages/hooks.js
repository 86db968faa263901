// The webhooks of a server: where each is called, what becomes of its calls, and the last of them one by one.

import { path } from "../api.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { queueAt, spaceAt } from "../places.js";
import { badge, button, copyButton, table, time } from "../widgets.js";

const EVERY_MS = 5_000; // how often the server is asked again while the page is seen
const GOOD = new Set(["queued", "duplicate", "filtered", "challenge"]);

/** The page. */
export async function hooks({ api, signal, say }) {
  const list = table({
    caption: "What became of calls since the server started", key: (row) => `${row.space}/${row.name}`,
    empty: "No spec of this server declares a webhook. One is declared as `webhook NAME { queue: QUEUE … }` in a spec, and holds once the spec is applied.",
    columns: columns(say),
  });
  const state = h("p", { class: "quiet", role: "status" });
  async function look() {
    list.update((await api.get("/v1/hooks")).hooks);
  }
  await look();
  const timer = setInterval(() => {
    if (document.hidden) return;
    look().then(() => replace(state), (error) => signal.aborted || replace(state, `Not up to date. ${error.message}`));
  }, EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  return { title: "Webhooks", crumbs: [["Spaces", "#/spaces"]], nodes: [list.element, state, button("Look again", look)] };
}

function columns(say) {
  const address = (row) => path`/hook/${row.space}/${row.name}`;
  return [
    { title: "Webhook", heading: true, value: (row) => row.name, cell: (row) => row.name },
    { title: "Space", value: (row) => row.space, cell: (row) => h("a", { href: spaceAt(row.space) }, row.space) },
    { title: "Queue", value: (row) => row.queue, cell: (row) => (row.queue ? h("a", { href: queueAt(row.space, row.queue) }, row.queue) : "none: a command is carried out") },
    { title: "Address", value: address, cell: (row) => [h("code", { class: "wrap" }, address(row)), " ", copyButton("Copy", () => location.origin + address(row), say)] },
    { title: "State", value: (row) => [row.state, row.why], cell: (row) => (row.state === "open" ? badge("ready", "open") : [badge("paused", row.state), " ", row.why]) },
    { title: "Calls", value: (row) => row.counts, cell: counts },
    { title: "Last calls", value: (row) => row.recent, cell: last },
  ];
}

function counts(row) {
  const some = Object.entries(row.counts).filter(([, n]) => n);
  if (!some.length) return h("span", { class: "quiet" }, "none yet");
  return h("ul", { class: "plain" }, some.map(([what, n]) => h("li", {}, `${count(n)} ${what.replaceAll("_", " ")}`)));
}

function last(row) {
  if (!row.recent?.length) return h("span", { class: "quiet" }, "none yet");
  const calls = [...row.recent].reverse(); // the latest first
  const line = (call) => h("li", {}, time(call.at), " ", call.status || "left", " ", badge(call.outcome.split(",").every((one) => GOOD.has(one.trim())) ? "finished" : "backoff", call.outcome.replaceAll("_", " ")));
  return [
    h("ul", { class: "plain" }, calls.slice(0, 3).map(line)),
    calls.length > 3 && h("details", {}, h("summary", {}, `${count(calls.length - 3)} before`), h("ul", { class: "plain" }, calls.slice(3).map(line)))];
}
