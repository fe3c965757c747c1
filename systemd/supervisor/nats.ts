/** The NATS server that one machine's installation starts and owns. */
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asAccount, partEnvironment } from "../as-account.ts";
import { StartFailure } from "../failure.ts";
import type { Instance } from "../instance.ts";
import { run } from "../run.ts";
import { replaceFile } from "../write-file.ts";
import { natsPasswordOf, readableBy } from "./credentials.ts";
import { parseNatsLine } from "./log-line.ts";
import type { PartSpec } from "./part.ts";
import { checkPortIsFree, freePort } from "./ports.ts";

const host = "127.0.0.1";
const user = "sandgate";
// A request body of the largest default size, each of its characters escaped, fits in.
const maxPayloadBytes = 8 * 1024 * 1024;
const startTimeoutMs = 60_000; // reading back a large JetStream store takes its time

/** A server that can be started, and the URL with the password that only the parts get. */
export interface OwnedNats {
  readonly spec: PartSpec;
  readonly url: string;
  readonly port: number;
}

/** Writes the server's configuration. Its port stays the same however often the server is started again. */
export async function configureNats(instance: Instance): Promise<OwnedNats> {
  const { config, accounts, paths } = instance;
  const port = config.natsPort || (await freePort(host));
  await checkPortIsFree(host, port, { part: "NATS", setting: "SANDGATE_NATS_PORT" });
  const password = await natsPasswordOf(instance);
  const text = configuration(paths.nats, port, password, await canSyncAlways());
  await replaceFile(paths.natsConf, text, readableBy(accounts.nats));
  // Without a pipe on stdin that it would read, the server is tied to its supervisor by the kernel.
  const command = asAccount(accounts.nats, ["setpriv", "--pdeathsig", "TERM", "--", "nats-server", "--config", paths.natsConf]);
  const spec: PartSpec = {
    name: "nats",
    argv: command,
    env: partEnvironment(instance, "nats"),
    cwd: "/",
    parse: parseNatsLine,
    logFile: join(paths.logs, "nats.log"),
    notes: paths.supervisor,
  };
  return { spec, port, url: `nats://${user}:${password}@${host}:${port}` };
}

/** @throws {StartFailure} when the server does not answer in time, or `aborted` is. */
export async function waitForNats(port: number, aborted: AbortSignal): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  while (!(await greets(port))) {
    aborted.throwIfAborted();
    if (Date.now() > deadline) throw new StartFailure(`nats-server does not answer on port ${port} after ${startTimeoutMs / 1_000} s`);
    await sleep(50);
  }
}

function configuration(store: string, port: number, password: string, syncAlways: boolean): string {
  // JSON is a subset of the server's configuration language.
  const settings = {
    listen: `${host}:${port}`,
    authorization: { user, password },
    max_payload: maxPayloadBytes,
    jetstream: { store_dir: store, max_memory_store: 256 * 1024 * 1024, ...(syncAlways ? { sync_interval: "always" } : {}) },
  };
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

/** Acknowledged must mean on disk; servers before 2.10 do not know the setting and refuse to start with it. */
async function canSyncAlways(): Promise<boolean> {
  const version = /v(\d+)\.(\d+)/.exec(await run(["nats-server", "--version"]));
  const [major, minor] = [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)];
  return major > 2 || (major === 2 && minor >= 10);
}

/** A NATS server speaks first. */
async function greets(port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    const [greeting] = (await once(socket, "data", { signal: AbortSignal.timeout(1_000) })) as [Buffer];
    return greeting.toString().startsWith("INFO ");
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
