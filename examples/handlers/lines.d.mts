import type { Context, Result, SwitchboardEvent } from "./switchboard.d.ts";

export class TryAgain extends Error {
  constructor(message?: string, options?: { retryAfterMs?: number });
}

export class GiveUp extends Error {}

export function serve(handle: (event: SwitchboardEvent, ctx: Context) => Result | null | Promise<Result | null>): void;
