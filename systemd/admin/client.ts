/** The operator API over HTTP. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../failure.ts";
import { AdminError } from "./failures.ts";

/** Longer than the server takes to delete a sandbox. */
const timeoutMs = 90_000;
const pageSize = 100;
const waitMaxS = 60;

interface PageOf<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly page: number; readonly page_size: number; readonly total_items: number; readonly total_pages: number };
}

type Query = Readonly<Record<string, string | undefined>>;

export class AdminClient {
  readonly #url: URL;
  readonly #apiKey: string;

  constructor(url: URL, apiKey: string) {
    this.#url = url;
    this.#apiKey = apiKey;
  }

  /** @throws {AdminError} with the server's message, or why there is no answer */
  async call<T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
    const response = await this.#fetch(method, path, body);
    const answer = await parsed(response);
    if (!response.ok) throw refused(response, answer);
    return answer as T;
  }

  /** A whole list as one page. Where the rate does not allow all of it at once, it waits. */
  async all<T extends { readonly id: string }>(path: string, query: Query = {}): Promise<PageOf<T>> {
    // By id, because what is new moves the rest to later pages.
    const items = new Map<string, T>();
    for (let page = 1, pages = 1; page <= pages; page++) {
      const answer = await this.#page<T>(path, query, page);
      for (const item of answer.data) items.set(item.id, item);
      pages = answer.pagination.total_pages;
    }
    const data = [...items.values()];
    return { data, pagination: { page: 1, page_size: data.length, total_items: data.length, total_pages: data.length > 0 ? 1 : 0 } };
  }

  async #page<T>(path: string, query: Query, page: number): Promise<PageOf<T>> {
    const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
    const parameters = new URLSearchParams([...given, ["page", String(page)], ["page_size", String(pageSize)]]);
    for (;;) {
      const response = await this.#fetch("GET", `${path}?${parameters}`);
      const answer = await parsed(response);
      if (response.ok) return answer as PageOf<T>;
      const waitS = Number(response.headers.get("retry-after"));
      if (response.status !== 429 || !(waitS > 0 && waitS <= waitMaxS)) throw refused(response, answer);
      await sleep(waitS * 1_000);
    }
  }

  async #fetch(method: string, path: string, body?: unknown): Promise<Response> {
    const base = this.#url.href.replace(/\/$/, "");
    try {
      return await fetch(base + path, {
        method,
        headers: { "x-api-key": this.#apiKey, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // The key is for this server and for no other that it may name.
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      throw new AdminError(`no answer from ${base}: ${reasonOf(error)}`);
    }
  }
}

async function parsed(response: Response): Promise<unknown> {
  const text = await response.text().catch(() => "");
  try {
    return JSON.parse(text);
  } catch {
    throw new AdminError(`the answer (status ${response.status}) is not JSON: is this the address of a Sandgate gateway?`);
  }
}

function refused(response: Response, answer: unknown): AdminError {
  const { message, request_id } = (answer as { error?: { message?: string; request_id?: string } } | null)?.error ?? {};
  return new AdminError(`${message ?? `the server answered with status ${response.status}`}${request_id ? ` (${request_id})` : ""}`);
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === "TimeoutError") return `nothing came in ${timeoutMs / 1_000} seconds`;
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message ? cause.message : messageOf(error);
}
