/** The units are files for administrators to read. What they repeat of the code is the same there. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { appDir } from "../../../../shared/programs.mjs";
import { pathsOf } from "../../../../systemd/base/instance.ts";
import { nodeCommand } from "../../../../systemd/supervisor/node-parts.ts";
import { helperSocket } from "../../../../systemd/units/given.ts";
import { programDir, unitNames } from "../../../../systemd/units/places.ts";
import { preparedInstance } from "../../../helpers/prepare.ts";

const textOf = (unit: string): string => readFileSync(join(appDir, "systemd/units", unit), "utf8");
const fieldOf = (unit: string, name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(textOf(unit))?.[1] ?? assert.fail(`${unit} has no ${name}`);

test("parts are started with the same command as by npm start", async () => {
  const instance = await preparedInstance();
  const installed = { ...instance, paths: { ...instance.paths, app: programDir } };
  assert.equal(fieldOf("sandgate-gateway@.service", "ExecStart"), nodeCommand(installed, "gateway/main.ts").join(" "));
  const worker = [join(programDir, "systemd/base/run-as-worker"), ...nodeCommand(installed, "worker/main.ts")];
  assert.equal(fieldOf("sandgate-worker.service", "ExecStart"), worker.join(" "));
});

test("they name the same accounts and places", () => {
  const { user, dataDir } = loadConfig({});
  const users = ["sandgate-worker", "sandgate-gateway@", "sandgate-nats"].map((unit) => fieldOf(`${unit}.service`, "User"));
  assert.deepEqual(users, [user, `${user}-gateway`, `${user}-nats`]);
  assert.deepEqual([fieldOf("sandgate-helper.socket", "ListenStream"), fieldOf("sandgate-helper.socket", "SocketUser")], [helperSocket, user]);
  const writable = ["gateway@", "nats"].map((part) => fieldOf(`sandgate-${part}.service`, "ReadWritePaths"));
  assert.deepEqual(writable, [join(dataDir, "gateway"), join(dataDir, "nats")]);
  assert.match(fieldOf("sandgate-cluster.service", "ReadWritePaths"), new RegExp(`^${dataDir} `));
  assert.equal(fieldOf("sandgate-cluster.service", "ConditionPathExists"), pathsOf(loadConfig({})).natsCluster);
  assert.equal(unitNames().length, 8);
});
