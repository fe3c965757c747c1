/** A NATS server that runs for the length of a restore, on the files of an installation that is not in its place yet. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { StartFailure } from "../base/failure.ts";
import type { Instance } from "../base/instance.ts";
import { configureNats, waitForNats } from "../supervisor/nats.ts";

const linesShown = 5;

/** @param work is given the server's URL */
export async function withServer<T>(instance: Instance, signal: AbortSignal, work: (url: string) => Promise<T>): Promise<T> {
  const nats = await configureNats(instance, []);
  const [file = "", ...args] = nats.spec.argv;
  const server = spawn(file, args, { env: nats.spec.env, cwd: nats.spec.cwd, stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(server, "close");
  const said = text(server.stderr);
  const early = ended.then(async () => {
    throw new StartFailure(`nats-server has ended: ${(await said).trim().split("\n").slice(-linesShown).join("\n")}`);
  });
  early.catch(() => {});
  try {
    await Promise.race([waitForNats(nats, signal), early]);
    return await Promise.race([work(nats.url), early]);
  } finally {
    server.kill("SIGTERM");
    await ended;
    // Every start writes its own.
    await rm(instance.paths.natsConf, { force: true });
  }
}
