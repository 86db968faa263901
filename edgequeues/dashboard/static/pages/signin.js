// Signing in: a token is traded for a cookie, which no script can read.

import { h, replace } from "../dom.js";
import { trouble } from "../dialogs.js";
import { field } from "../widgets.js";

/** The page that stands for every other while nobody is signed in. Afterwards the one that was asked for is drawn. */
export function signIn({ api, again }) {
  const token = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, autofocus: true });
  const submit = h("button", { class: "primary" }, "Sign in");
  const wrong = h("div");
  async function send(event) {
    event.preventDefault();
    submit.disabled = true;
    try {
      await api.post("/ui/login", { token: token.value.trim() });
      token.value = "";
      await again();
    } catch (error) {
      if (error.name !== "AbortError") replace(wrong, trouble(error));
      submit.disabled = false;
      token.select();
    }
  }
  const form = h("form", { class: "stack", on: { submit: send } },
    field("Token", token, "One that was made with `edgequeues token create`. It is not kept in this browser: a cookie stands for it, for 12 hours at most."),
    h("div", { class: "buttons" }, submit), wrong);
  return { title: "Sign in", nodes: [h("p", {}, "This server asks who you are."), form] };
}
