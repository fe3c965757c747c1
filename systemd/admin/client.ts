/** The operator API over HTTP: by the gateway's Unix socket on its own machine, else by its address. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { pause } from "../../shared/waiting.ts";
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

/** Where the gateway is. */
export interface Place {
  readonly url: URL;
  /** The Unix socket that it is asked on; its address where there is none. */
  readonly socketPath?: string;
}

interface Answer {
  readonly status: number;
  readonly retryAfterS: number;
  readonly body: unknown;
}

export class AdminClient {
  readonly #place: Place;
  readonly #apiKey: string;

  constructor(place: Place, apiKey: string) {
    this.#place = place;
    this.#apiKey = apiKey;
  }

  /** @throws {AdminError} with the server's message, or why there is no answer */
  async call<T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
    const answer = await this.#ask(method, path, body);
    if (!isOk(answer)) throw refused(answer);
    return answer.body as T;
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
      const answer = await this.#ask("GET", `${path}?${parameters}`);
      if (isOk(answer)) return answer.body as PageOf<T>;
      const { status, retryAfterS } = answer;
      if (status !== 429 || !(retryAfterS > 0 && retryAfterS <= waitMaxS)) throw refused(answer);
      await pause(retryAfterS * 1_000);
    }
  }

  /** Follows no redirection: the key is for this server and for no other that it may name. */
  async #ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const { url, socketPath } = this.#place;
    const base = url.href.replace(/\/$/, "");
    try {
      const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(base + path, {
        method,
        headers: { "x-api-key": this.#apiKey, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        ...(socketPath === undefined ? {} : { socketPath }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      request.end(body === undefined ? undefined : JSON.stringify(body));
      const [response] = (await once(request, "response")) as [IncomingMessage];
      const { statusCode: status = 0, headers } = response;
      return { status, retryAfterS: Number(headers["retry-after"]), body: parsed(status, await text(response)) };
    } catch (error) {
      if (error instanceof AdminError) throw error;
      throw new AdminError(`no answer from ${socketPath ?? base}: ${reasonOf(error, socketPath)}`);
    }
  }
}

function parsed(status: number, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new AdminError(`the answer (status ${status}) is not JSON: is this the address of a Sandgate gateway?`);
  }
}

const isOk = ({ status }: Answer): boolean => status >= 200 && status < 300;

function refused({ status, body }: Answer): AdminError {
  const { message, request_id } = (body as { error?: { message?: string; request_id?: string } } | null)?.error ?? {};
  return new AdminError(`${message ?? `the server answered with status ${status}`}${request_id ? ` (${request_id})` : ""}`);
}

const noSocket: Readonly<Record<string, string>> = {
  ENOENT: "no gateway has been started there",
  ECONNREFUSED: "the gateway does not run",
  EACCES: "only root and the user who runs npm start may use it",
};

function reasonOf(error: unknown, socketPath: string | undefined): string {
  if (!(error instanceof Error)) return messageOf(error);
  const { name, cause, code = "" } = error as NodeJS.ErrnoException;
  // A signal's time runs out with an error of its own below that of the request.
  if ([name, (cause as Error | undefined)?.name].includes("TimeoutError")) return `nothing came in ${timeoutMs / 1_000} seconds`;
  const reason = socketPath === undefined ? undefined : noSocket[code];
  return reason ? `${reason}. SANDGATE_DATA_DIR says whose gateway is meant here, SANDGATE_URL or --url one elsewhere` : messageOf(error);
}
