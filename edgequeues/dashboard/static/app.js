// The dashboard: finds the page for the address, draws it, and keeps focus, title and status right.
//
// A page is a function of a context that gives what is to be drawn, or a promise of it:
//   page(context) -> {title, crumbs: [[text, address]], nodes: [element]}
// The context has:
//   params   parts of the address by name        query    URLSearchParams of what follows its "?"
//   api      calls, ended when the page is left  signal   aborted when the page is left
//   session  who is signed in, as /ui/session says
//   say(text, failed)     tells how something went, to eyes and ears
//   go(address)           leads elsewhere        rewrite(address)  the same page under another address
//   again()               draws the page anew    follow(address, listeners, onState, until)  listens to a stream

import { makeApi } from "./api.js";
import { trouble } from "./dialogs.js";
import { h, replace } from "./dom.js";
import { follow } from "./live.js";
import { audit } from "./pages/audit.js";
import { entities, entity } from "./pages/entities.js";
import { help } from "./pages/help.js";
import { hooks } from "./pages/hooks.js";
import { letter } from "./pages/letter.js";
import { letters } from "./pages/letters.js";
import { lines } from "./pages/lines.js";
import { message } from "./pages/message.js";
import { messages } from "./pages/messages.js";
import { queue } from "./pages/queue.js";
import { schedules } from "./pages/schedules.js";
import { sessions } from "./pages/sessions.js";
import { signIn } from "./pages/signin.js";
import { space } from "./pages/space.js";
import { spaces } from "./pages/spaces.js";
import { spec, specs } from "./pages/specs.js";
import { refreshTimes } from "./widgets.js";

// Which page shows which address. `:name` is any one part. To add a page: write it as a module in pages/, import it
// above, add its line here; and to have it linked from spaces or queues, its part in places.js, or a line in MAIN.
const ROUTES = [
  ["", spaces],
  ["spaces", spaces],
  ["spaces/:space", space],
  ["spaces/:space/audit", audit],
  ["spaces/:space/schedules", schedules],
  ["spaces/:space/specs", specs],
  ["spaces/:space/specs/:app", spec],
  ["spaces/:space/entities", entities],
  ["spaces/:space/entities/:type", entities],
  ["spaces/:space/entities/:type/:id", entity],
  ["spaces/:space/queues/:queue", queue],
  ["spaces/:space/queues/:queue/messages", messages],
  ["spaces/:space/queues/:queue/messages/:id", message],
  ["spaces/:space/queues/:queue/dead-letters", letters],
  ["spaces/:space/queues/:queue/dead-letters/:id", letter],
  ["spaces/:space/queues/:queue/lines", lines],
  ["spaces/:space/queues/:queue/sessions", sessions],
  ["hooks", hooks],
  ["help", help],
];
const MAIN = [["#/spaces", "Spaces"], ["#/hooks", "Webhooks"], ["#/help", "Help"]];

const TIMES_MS = 10_000; // how often relative times are said anew
const STATUS_MS = 8_000;

const main = document.getElementById("main");
const status = document.getElementById("status");
const who = document.getElementById("who");
let leaving = new AbortController();
let statusTimer = 0;
let first = true;

function say(text, failed = false) {
  clearTimeout(statusTimer);
  status.textContent = text;
  status.classList.toggle("failed", failed);
  if (!failed) statusTimer = setTimeout(() => replace(status), STATUS_MS);
}

/** The page for an address, and what its parts are called. */
function find(address) {
  const [where, asked = ""] = address.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = where.split("/").filter(Boolean);
  for (const [pattern, page] of ROUTES) {
    const names = pattern.split("/").filter(Boolean);
    if (names.length !== parts.length) continue;
    const params = {};
    const fits = names.every((name, index) => {
      if (!name.startsWith(":")) return name === parts[index];
      params[name.slice(1)] = decodeURIComponent(parts[index]);
      return true;
    });
    if (fits) return { page, params, query: new URLSearchParams(asked) };
  }
  return { page: unknown, params: {}, query: new URLSearchParams(asked) };
}

function unknown() {
  const nodes = [h("p", {}, "There is no such page. The address may be of a newer version, or mistyped.")];
  return { title: "No such page", crumbs: [["Spaces", "#/spaces"]], nodes };
}

/** Draw the page of the address as it is now. Whatever the page before still did is ended. */
async function draw() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const api = makeApi({ onSignedOut: () => looked(api).catch(() => {}), signal });
  main.setAttribute("aria-busy", "true");
  let drawn;
  try {
    const session = await api.get("/ui/session");
    told(session, api);
    const locked = session.needs_token && !session.signed_in;
    const { page, params, query } = locked ? { page: signIn, params: {}, query: null } : find(location.hash);
    const listen = (address, listeners, onState = () => {}, until = signal) =>
      follow(address, listeners, { signal: until, onState, onRefused: () => looked(api) });
    const go = (address) => (location.hash === address ? draw() : (location.hash = address));
    const rewrite = (address) => history.replaceState(null, "", address);
    drawn = await page({ params, query, api, signal, session, say, go, rewrite, again: draw, follow: listen });
  } catch (error) {
    if (signal.aborted) return;
    drawn = { title: error.title ?? "Something went wrong", crumbs: [["Spaces", "#/spaces"]], nodes: [trouble(error, draw)] };
  }
  if (!signal.aborted) shown(drawn);
}

/** Was a call or a stream refused because nobody is signed in any more? Then the page says so. */
async function looked(api) {
  const session = await api.get("/ui/session");
  if (session.needs_token && !session.signed_in) await draw();
}

function shown({ title, crumbs, nodes }) {
  document.title = `${title} · edgequeues`;
  const way = crumbs?.length && h("nav", { class: "crumbs", "aria-label": "Breadcrumbs" },
    h("ol", {}, crumbs.map(([text, address]) => h("li", {}, h("a", { href: address }, text)))));
  const heading = h("h1", { tabindex: "-1" }, title);
  replace(main, way, heading, nodes);
  main.removeAttribute("aria-busy");
  // After the first page the focus is where the browser puts it; a page that wants it elsewhere says so by autofocus.
  const wanted = main.querySelector("[autofocus]");
  if (wanted) wanted.focus();
  else if (!first) heading.focus();
  if (!first) scrollTo(0, 0);
  first = false;
  for (const link of document.querySelectorAll("#main-nav a")) {
    const here = location.hash.startsWith(link.getAttribute("href"));
    link.toggleAttribute("aria-current", here);
    if (here) link.setAttribute("aria-current", "page");
  }
}

function told(session, api) {
  document.getElementById("version").textContent = `edgequeues ${session.version}`;
  if (!session.signed_in) {
    replace(who, session.needs_token ? "Not signed in" : "No sign-in needed here");
    return;
  }
  const out = async () => {
    await api.post("/ui/logout", "").catch((error) => say(`Not signed out. ${error.message}`, true));
    await draw();
  };
  replace(who, "Signed in as ", h("strong", {}, session.name || "a token without a name"), " ",
    h("button", { type: "button", on: { click: out } }, "Sign out"));
}

function theme() {
  const select = document.getElementById("theme");
  select.value = document.documentElement.dataset.theme ?? "system";
  select.addEventListener("change", () => {
    if (select.value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = select.value;
    try {
      localStorage.setItem("edgequeues-theme", select.value);
    } catch {
      say("This browser keeps nothing for the page: the theme is as before after a reload.");
    }
  });
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const filter = main.querySelector("[type=search]");
  if (event.key === "/" && filter) {
    event.preventDefault();
    filter.focus();
  } else if (event.key === "g") location.hash = "#/spaces";
  else if (event.key === "?") location.hash = "#/help";
}

replace(document.getElementById("main-nav"), MAIN.map(([address, text]) => h("a", { href: address }, text)));
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which page it is, and would say another
  main.focus();
});
document.addEventListener("keydown", keys);
addEventListener("hashchange", draw);
setInterval(() => refreshTimes(main), TIMES_MS);
theme();
await draw();
