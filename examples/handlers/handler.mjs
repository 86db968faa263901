// A handler in JavaScript: node handler.mjs is the command that the daemon runs.
//
//   edgequeues consume --command "node examples/handlers/handler.mjs"

import { serve } from "./lines.mjs";

serve(async (event, ctx) => {
  ctx.metrics.count("messages", 1, { source: event.source });
  if (!event.reply) {
    ctx.logger.info("nobody to answer");
    return null;
  }
  const text = `You wrote: ${event.content.text ?? ""}`;
  if (event.reply.channel === "email") return { reply: { channel: "email", text } };
  return { reply: { channel: "sms", body: text.slice(0, 1600) } };
});
