/**
 * Sandgate as services of a real systemd, used by the end-to-end tests as by clients on another machine of its network: what the walls
 * around units break, they find.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { appDir } from "../../shared/programs.mjs";
import { CommandError } from "../../systemd/base/run.ts";
import { busAddress } from "../helpers/bus.ts";
import { atEnd, fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { reachedStackEnvironment } from "../helpers/shared.ts";
import { missingImage } from "../helpers/stack.ts";
import { Machine, volumeDir } from "./machine.ts";
import { Network } from "./network.ts";

/**
 * Those that need an installation only from outside. Not among them are files that start or break installations of their own, look at
 * its processes, Podman or folders, or lay traps for sandboxes on their host.
 */
const files = [
  ...["api/accounts", "api/create", "api/requests", "api/sandboxes", "api/usage"],
  ...["cli/commands", "cli/copy", "cli/terminal"],
  ...["client/calls", "client/sessions", "client/streams"],
  ...["exec/concurrency", "exec/output", "exec/results", "exec/server", "exec/trees"],
  ...["files/interrupted", "files/small", "files/transfer"],
  "operate/smoke",
  ...["sessions/attach", "sessions/errors", "sessions/pipes", "sessions/terminal"],
  ...["snapshots/api", "snapshots/fork", "snapshots/once", "snapshots/restore"],
  ...["stream/bytes", "stream/lines"],
];
const filesAtOnce = 4;
const network = await fixture(Network.start());
const machine = await fixture(Machine.start("end-to-end", { network, number: 1 }));
const { path: folder } = fixture(temporaryFolder("end-to-end"));
/** All tests call from one address. */
const settings = [
  `SANDGATE_VOLUME=${volumeDir}`,
  "SANDGATE_HOST=0.0.0.0",
  `SANDGATE_NATS_HOST=${Network.address(1)}`,
  "SANDGATE_AUTH_FAILURES_PER_ADDRESS=100000",
  "SANDGATE_SIGN_UPS_PER_ADDRESS=100000",
  `SANDGATE_LOCAL_IMAGES=${missingImage}`,
];
await machine.install([], settings);

/** Copies a secret of the machine to this one. @returns its path */
async function secret(name: string): Promise<string> {
  const path = join(folder, name);
  writeFileSync(path, await machine.run("cat", `/var/lib/sandgate/secrets/${name}`), { mode: 0o600 });
  return path;
}

const natsUrl = busAddress({
  SANDGATE_NATS_URL: `nats://${Network.address(1)}:4223`,
  SANDGATE_NATS_NKEY_FILE: await secret("root.nk"),
  SANDGATE_NATS_CA: await secret("nats.crt"),
});
const stack = reachedStackEnvironment({ url: `http://${Network.address(1)}:8080`, apiKey: (await machine.key()).trim(), natsUrl });
const ending = new AbortController();
atEnd(() => ending.abort());

/** Runs a file as a program of its own. @throws {CommandError} when one of its tests fails */
async function runFile(file: string): Promise<void> {
  const env = Object.entries({ ...stack, TMPDIR: tmpdir() }).map(([name, value]) => `${name}=${value}`);
  const program = ["node_modules/.bin/node", "node_modules/tsx/dist/cli.mjs", `test/e2e/${file}.test.ts`].map((path) => join(appDir, path));
  await network.runUntil(ending.signal, "env", `--chdir=${appDir}`, ...env, ...program);
}

test("end-to-end tests pass from outside", { concurrency: filesAtOnce }, async (context) => {
  await Promise.all(
    files.map((file) =>
      context.test(file, async () => {
        await runFile(file).catch((error: unknown) => assert.fail(error instanceof CommandError ? error.output : String(error)));
      }),
    ),
  );
});
