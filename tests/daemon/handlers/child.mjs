// The same as child_for_tests.py, by way of the module that hides the protocol.

import { GiveUp, serve, TryAgain } from "../../../examples/handlers/lines.mjs";

const note = (text) => ({ artifacts: [{ kind: "note", note: String(text) }] });

serve(async (event, ctx) => {
  const text = event.content.text ?? "";
  switch (event.tags[0]) {
    case "reply":
    case "dict":
      return { reply: { channel: "sms", body: text } };
    case "artifacts":
      return note(`attempt ${ctx.attempt}`);
    case "big":
      return note(text.length);
    case "who":
      return note(process.pid);
    case "count":
      console.log("this goes to standard error");
      ctx.logger.info("counting", { colour: "blue" });
      ctx.metrics.count("things", 2, { colour: "blue" });
      ctx.metrics.observe("size", 1.5, { colour: "blue" });
      return undefined;
    case "nonsense":
      return { reply: { channel: "smoke" } };
    case "raise":
      throw new RangeError("no such thing");
    case "again":
      throw new TryAgain("later", { retryAfterMs: 7000 });
    case "never":
      throw new GiveUp("not for us");
    case "hang":
      return new Promise(() => setTimeout(() => {}, 3_600_000));
    case "object":
      return note(await ctx.url(event.content.attachments[0].r2));
    case "send":
      await ctx.sendSms({ body: "now" });
      return null;
    case "blocked":
      await ctx.sendSms({ body: "now", to: "+15550666" });
      return null;
    default:
      return null;
  }
});
