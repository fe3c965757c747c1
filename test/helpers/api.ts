/** Calls the HTTP API without the client library. */
import { pause } from "../../shared/waiting.ts";

const deletePollMs = 50;

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

/** One line of an execution's stream. */
export interface Chunk {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exit_code?: number;
  readonly error?: string;
  readonly code?: string;
}

export interface ExecuteResult {
  readonly id: string;
  readonly status: string;
  readonly exit_code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdout_truncated?: boolean;
  readonly stderr_truncated?: boolean;
  readonly error?: string;
  readonly execution_time_ms: number;
  readonly created_at: string;
  readonly completed_at: string;
}

export class Api {
  readonly url: string;
  readonly apiKey: string;

  constructor({ url, apiKey }: { url: string; apiKey: string }) {
    this.url = url;
    this.apiKey = apiKey;
  }

  /** Makes any call. A plain object becomes a JSON body, and a JSON answer is parsed. */
  async call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): Promise<Answer<T>> {
    const response = await this.raw(
      method,
      path,
      body === undefined ? undefined : JSON.stringify(body),
      body === undefined ? headers : { "content-type": "application/json", ...headers },
      signal,
    );
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (response.headers.get("content-type")?.includes("json") && text ? parse(text) : text) as T,
    };
  }

  raw(method: string, path: string, body?: RequestInit["body"], headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: { "x-api-key": this.apiKey, ...headers },
      ...(body === undefined ? {} : { body, duplex: "half" }),
      ...(signal ? { signal } : {}),
    } as RequestInit);
  }

  /** Makes a sandbox of the default image and returns its id. */
  async create(options: Record<string, unknown> = {}): Promise<string> {
    const { status, body } = await this.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", ...options });
    if (status !== 201) throw new Error(`create answered ${status}: ${JSON.stringify(body)}`);
    return body.id;
  }

  /** Has a sandbox be gone; it may be gone already, or not be made yet. */
  async delete(id: string): Promise<void> {
    for (;;) {
      const { status, body } = await this.call<{ error?: { message: string } }>("DELETE", `/v1/sandboxes/${id}/delete`);
      if (status === 200 || status === 404) return;
      if (status !== 409 || !body.error?.message.includes("being created")) throw new Error(`delete answered ${status}: ${JSON.stringify(body)}`);
      await pause(deletePollMs);
    }
  }

  async execute(id: string, command: string, options: Record<string, unknown> = {}): Promise<ExecuteResult> {
    const { status, body } = await this.call<ExecuteResult>("POST", `/v1/sandboxes/${id}/execute`, { command, ...options });
    if (status !== 200) throw new Error(`execute answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Starts a streaming execution; the answer's headers have arrived when this resolves. */
  stream(id: string, command: string, options: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Response> {
    return this.raw("POST", `/v1/sandboxes/${id}/execute_async`, JSON.stringify({ command, ...options }), { "content-type": "application/json" }, signal);
  }
}

/** The lines of a stream as they arrive, without the empty chunk that starts the stream of a quiet command. */
export async function* chunksOf(response: Response): AsyncGenerator<Chunk> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== '{"stdout":""}') yield JSON.parse(line) as Chunk;
  }
  if (rest) throw new Error(`the stream ended inside a line: ${rest.slice(0, 200)}`);
}

/** Reads a whole stream: its output, joined, and its last line. */
export async function collect(response: Response): Promise<{ stdout: string; stderr: string; last: Chunk | undefined; chunks: Chunk[] }> {
  const chunks: Chunk[] = [];
  for await (const chunk of chunksOf(response)) chunks.push(chunk);
  const join = (name: "stdout" | "stderr"): string => chunks.map((chunk) => chunk[name] ?? "").join("");
  return { stdout: join("stdout"), stderr: join("stderr"), last: chunks.at(-1), chunks };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
