// The spaces there are, by name.

import { h } from "../dom.js";
import { counted } from "../format.js";
import { spaceAt } from "../places.js";
import { button, field, onPause, table } from "../widgets.js";

const ASKED = 1_000; // spaces a call, where they are searched
const SHOWN = 100; // spaces that are listed, or looked for, at once
const CALLS = 20; // that one look makes at most

/** The page. Its filter goes through the list of names, which the server has no index for parts of. */
export async function spaces({ api, query, go, rewrite, say, signal }) {
  let found = [];
  let after = null;
  let looking = 0;
  const list = table({
    caption: "Spaces",
    key: (row) => row.tag + row.id,
    empty: "No space has this in its name. One is made by the first message that is put into it.",
    columns: [
      { title: "Space", heading: true, cell: (row) => (row.tag === "data" ? h("a", { href: spaceAt(row.id) }, row.id) : row.id) },
      { title: "Holds", cell: (row) => (row.tag === "data" ? "queues" : "trace queues: read them over the API, with tag=trace") },
    ],
  });
  const told = h("p", { class: "quiet" });
  const more = button("Look further", () => look(found.length + SHOWN));
  const filter = h("input", { type: "search", name: "name", value: query.get("name") ?? "", autocomplete: "off" });

  async function look(wanted) {
    const mine = ++looking;
    const part = filter.value.trim().toLowerCase();
    for (let call = 0; call < CALLS && found.length < wanted; call += 1) {
      const page = await api.get("/v1/spaces", { after, limit: part ? ASKED : SHOWN });
      if (mine !== looking) return;
      found = found.concat(page.spaces.filter((one) => one.id.toLowerCase().includes(part)));
      after = page.resume;
      if (after === null) break;
    }
    list.update(found);
    more.hidden = after === null;
    told.textContent = after === null ? counted(found.length, "space") : `${counted(found.length, "space")} so far`;
  }

  onPause(filter, signal, () => {
    rewrite(filter.value ? `#/spaces?name=${encodeURIComponent(filter.value)}` : "#/spaces");
    [found, after] = [[], null];
    look(SHOWN).catch((error) => signal.aborted || say(error.message, true));
  });
  try {
    await look(SHOWN);
  } catch (error) {
    if (error.status !== 403) throw error;
    return { title: "Spaces", nodes: [h("p", {}, "The token that signed in may not list all spaces. Go to one that it may see."), going(go)] };
  }
  return { title: "Spaces", nodes: [h("div", { class: "tools" }, field("Filter by name", filter)), list.element, told, more] };
}

/** A form for those who know the name of their space. */
function going(go) {
  const name = h("input", { type: "search", name: "space", maxlength: 64, required: true, autocomplete: "off" });
  const send = (event) => {
    event.preventDefault();
    go(spaceAt(name.value.trim()));
  };
  return h("form", { class: "tools", on: { submit: send } }, field("Space", name), h("button", { class: "primary" }, "Go"));
}
