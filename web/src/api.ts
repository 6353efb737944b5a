// Requests to `mcpace ui`. The token is in the fragment of the address, which no browser sends to a server.

import type { Listing, Live, Page } from "./page.gen";

const KEPT = "mcpace-token";

/** The server refused a request; the message is a sentence for people. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The server doesn't answer. */
export class Silent extends Error {}

/** Moves the token from the address into storage, so that a copied address doesn't contain it. */
export function settle(): void {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  if (!match?.[1]) return;
  localStorage.setItem(KEPT, match[1]);
  history.replaceState(null, "", "#/");
}

export const listing = (): Promise<Listing> => ask("runs");
export const page = (id: string): Promise<Page> => ask("run", { id });
export const flight = (id: string): Promise<Page> => ask("flight", { id });
export const live = (id: string): Promise<Live> => ask("live", { id });
export const comparison = (first: string, second: string): Promise<Page> => ask("compare", { first, second });

async function ask<T>(what: string, query: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(`/api/${what}?${new URLSearchParams(query)}`, {
    headers: { "x-mcpace-token": localStorage.getItem(KEPT) ?? "" },
    cache: "no-store",
  }).catch(silent);
  const told: unknown = await answer.json().catch(silent);
  if (!answer.ok) throw new Refused(answer.status, (told as { error: string }).error);
  return told as T;
}

function silent(): never {
  throw new Silent();
}
