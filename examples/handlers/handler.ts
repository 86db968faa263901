// The same in TypeScript. Node.js 24 runs it as it is (22.6 and later: node --experimental-strip-types handler.ts).
//
//   edgequeues consume --command "node examples/handlers/handler.ts"

import { serve } from "./lines.mjs";
import type { Context, Result, SwitchboardEvent } from "./switchboard.d.ts";

async function handle(event: SwitchboardEvent, ctx: Context): Promise<Result | null> {
  for (const attachment of event.content.attachments ?? []) {
    const response = await ctx.download(attachment.r2);
    const data = await response.arrayBuffer();
    ctx.metrics.observe("attachment_bytes", data.byteLength);
  }
  if (event.reply?.channel !== "email") return null;
  return { reply: { channel: "email", text: `Thanks for writing about ${event.content.subject ?? "this"}.` } };
}

serve(handle);
