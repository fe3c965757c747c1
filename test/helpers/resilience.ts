/** Helpers for tests that kill, stop and disconnect parts. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { processIds } from "../../shared/util/proc.ts";
import { commandLineOf } from "../../worker/runtime/process/proc.ts";
import { type Answer, type Api, type Chunk, chunksOf } from "./api.ts";
import { TestProcess } from "./process.ts";
import type { Stack } from "./stack.ts";
import { until } from "./until.ts";

/** No container but those of sandboxes, and an end of draining that a test can wait for. */
export const plain = { SANDGATE_POOL_SIZE: "0", SANDGATE_DRAIN_MS: "1000" } as const;

export interface Listed {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

/** A command that counts its starts, prints the count, and then never ends by itself. */
export class Marked {
  readonly mark = `m${randomBytes(8).toString("hex")}`;
  /** The mark stands in the command line of a process that lives as long as the command. */
  readonly command = `echo run >> /root/runs; echo started; exec sh -c 'while :; do sleep 1; echo tick; done' ${this.mark}`;

  /** Processes of the command on this machine. */
  get alive(): number {
    return processIds().filter((pid) => commandLineOf(pid).some((word) => word.includes(this.mark))).length;
  }

  /** Resolves when no process of the command runs. */
  async gone(): Promise<void> {
    await until(`the end of the processes of ${this.mark}`, () => this.alive === 0);
  }
}

/** Starts a marked command as a stream; its first output has arrived when this resolves. */
export async function startMarked(api: Api, id: string): Promise<{ marked: Marked; outcome: Promise<Outcome> }> {
  const marked = new Marked();
  const response = await api.stream(id, marked.command);
  assert.equal(response.status, 200);
  const first = Promise.withResolvers<void>();
  const outcome = follow(chunksOf(response), first.resolve);
  await Promise.race([first.promise, outcome]);
  assert.ok(marked.alive > 0, "the command runs");
  return { marked, outcome };
}

/** How a stream ended: with a last line, or with a connection that broke. */
export type Outcome = { kind: "line"; last: Chunk | undefined } | { kind: "broken" };

async function follow(chunks: AsyncIterable<Chunk>, onFirst: () => void): Promise<Outcome> {
  let last: Chunk | undefined;
  try {
    for await (const chunk of chunks) {
      last = chunk;
      onFirst();
    }
    return { kind: "line", last };
  } catch {
    return { kind: "broken" };
  }
}

/** A stream that was cut off must say so: an error line or a broken connection, never an exit code. */
export function assertExplicitEnd(outcome: Outcome): void {
  if (outcome.kind === "broken") return;
  assert.equal(outcome.last?.exit_code, undefined, "no exit code was made up");
  assert.ok(outcome.last?.error, `the last line is an error: ${JSON.stringify(outcome.last)}`);
  assert.ok(["unavailable", "worker_lost"].includes(outcome.last.code ?? ""), outcome.last.code);
}

/** How often marked commands were started in a sandbox. */
export async function runsIn(api: Api, id: string): Promise<number> {
  return Number((await api.execute(id, "wc -l < /root/runs")).stdout);
}

/** A call that must not hang: the test fails when no answer comes. */
export async function answers(call: Promise<Answer>, withinMs = 15_000): Promise<Answer> {
  const late = new Promise<never>((_, reject) => setTimeout(reject, withinMs, new Error("the call hangs")).unref());
  return Promise.race([call, late]);
}

/** Asserts a 503 that asks the client to come back. */
export function assertUnavailable({ status, headers, body }: Answer): void {
  assert.equal(status, 503, JSON.stringify(body));
  assert.ok(["unavailable", "worker_lost"].includes((body.error as { code: string }).code), JSON.stringify(body));
  assert.match(headers.get("retry-after") ?? "", /^\d+$/);
}

export async function listOf(api: Api): Promise<Listed[]> {
  const { status, body } = await api.call<{ data: Listed[] }>("GET", "/v1/sandboxes/list?page_size=100");
  assert.equal(status, 200);
  return body.data;
}

/** Resolves when a sandbox runs commands (again). */
export async function usable(api: Api, id: string): Promise<void> {
  await until(`an answer of ${id}`, async () => (await api.execute(id, "echo ok")).stdout === "ok\n");
}

/** Resolves when the list and podman agree on the sandboxes, and all of them can be used and deleted. */
export async function assertAgreement(stack: Stack, api: Api): Promise<void> {
  const ids = await until("agreement of the list with podman", async () => {
    const listed = (await listOf(api)).map(({ id }) => id).sort();
    const made = (await stack.containers()).map(({ sandboxId }) => sandboxId).sort();
    return listed.join() === made.join() && listed;
  });
  for (const id of ids) await usable(api, id);
  const { status, body } = await api.call<{ deleted_ids: string[] }>("DELETE", "/v1/sandboxes/delete-all");
  assert.equal(status, 200);
  assert.deepEqual(body.deleted_ids.sort(), ids);
  assert.deepEqual(await stack.containers(), []);
  assert.deepEqual(await listOf(api), []);
}

/** The same process with other settings. */
export function withSettings({ spec }: TestProcess, settings: Readonly<Record<string, string>>): TestProcess {
  return new TestProcess({ ...spec, env: { ...spec.env, ...settings } });
}

/** Uploads bytes that never end; resolves when the upload is under way in the sandbox. */
export async function startEndlessUpload(api: Api, id: string, path: string): Promise<{ ended: Promise<number | "broken"> }> {
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 5).unref());
      controller.enqueue(new Uint8Array(16 * 1024));
    },
  });
  const ended = api.raw("POST", `/v1/sandboxes/${id}/upload?path=${path}`, body, { "content-type": "application/octet-stream" }).then(
    ({ status }) => status,
    () => "broken" as const,
  );
  await until("the upload's temporary file", async () => (await temporaryFiles(api, id)).length > 0);
  return { ended };
}

/** Names of the files that uploads in progress use. */
export async function temporaryFiles(api: Api, id: string): Promise<string[]> {
  const { stdout } = await api.execute(id, "find /tmp /root -name '.sandgate-upload-*'");
  return stdout.split("\n").filter(Boolean);
}
