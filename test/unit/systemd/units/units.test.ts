/** The units are files for administrators to read. What they repeat of the code is the same there. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { appDir } from "../../../../shared/programs.mjs";
import { type Account, instanceOf, pathsOf } from "../../../../systemd/base/instance.ts";
import { loadCredential } from "../../../../systemd/base/unit-credentials.ts";
import { directoriesOf } from "../../../../systemd/setup/directories.ts";
import { userManagerText } from "../../../../systemd/setup/user-manager.ts";
import { serverCommand } from "../../../../systemd/supervisor/nats.ts";
import { nodeCommand } from "../../../../systemd/supervisor/node-parts.ts";
import { credentialsFolder, environmentFile, helperSocket } from "../../../../systemd/units/given.ts";
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
  // biome-ignore lint/suspicious/noTemplateCurlyInString: systemd fills this in
  const paths = { app: programDir, nats: join(loadConfig({}).dataDir, "nats"), natsConf: "${SANDGATE_NATS_CONF}" };
  assert.equal(fieldOf("sandgate-nats.service", "ExecStart"), serverCommand(paths).join(" "));
});

test("they name the same accounts and places", () => {
  const { user, dataDir } = loadConfig({});
  const users = ["sandgate-worker", "sandgate-gateway@", "sandgate-nats"].map((unit) => fieldOf(`${unit}.service`, "User"));
  assert.deepEqual(users, [user, `${user}-gateway`, `${user}-nats`]);
  assert.deepEqual([fieldOf("sandgate-helper.socket", "ListenStream"), fieldOf("sandgate-helper.socket", "SocketUser")], [helperSocket, user]);
  for (const [unit, part] of Object.entries({ "sandgate-worker": "worker", "sandgate-gateway@": "gateway", "sandgate-nats": "nats" })) {
    assert.equal(fieldOf(`${unit}.service`, "EnvironmentFile"), environmentFile(part));
    assert.equal(fieldOf(`${unit}.service`, "LoadCredential"), loadCredential(credentialsFolder(part)));
  }
  const writable = ["gateway@", "nats"].map((part) => fieldOf(`sandgate-${part}.service`, "ReadWritePaths"));
  assert.deepEqual(writable, [["gateway", "lines"].map((name) => join(dataDir, name)).join(" "), join(dataDir, "nats")]);
  assert.match(fieldOf("sandgate-cluster.service", "ReadWritePaths"), new RegExp(`^${dataDir} `));
  assert.equal(fieldOf("sandgate-cluster.service", "ConditionPathExists"), pathsOf(loadConfig({})).natsCluster);
  assert.equal(unitNames().length, 9);
});

test("the journal drops no line of those that log much", () => {
  // journald knows the worker by the unit of the group that it moves to.
  for (const text of [...["sandgate-gateway@.service", "sandgate-worker.service"].map(textOf), userManagerText])
    assert.match(text, /^LogRateLimitIntervalSec=1\nLogRateLimitBurst=1000000$/m);
});

test("sandboxes get every controller that limits or weighs them", () => {
  assert.match(userManagerText, /^Delegate=cpu cpuset io memory pids$/m);
});

test("the accounts and folders that systemd is told of are those of the set-up", async () => {
  const { user, dataDir } = loadConfig({});
  const names =
    textOf("sandgate.sysusers")
      .match(/^u \S+ .*$/gm)
      ?.map((line) => line.split(" ")) ?? [];
  assert.deepEqual(
    names.map(([, name]) => name),
    [user, `${user}-gateway`, `${user}-nats`],
  );
  assert.match(textOf("sandgate.sysusers"), new RegExp(`^u ${user} .* ${dataDir}/home `, "m"));
  const instance = await preparedInstance();
  const account = (name: string, index: number) => ({ ...instance.account, name: `sandgate${name}`, uid: 901 + index, gid: 911 + index });
  const [worker, gateway, nats] = ["", "-gateway", "-nats"].map(account) as [Account, Account, Account];
  const installed = instanceOf(loadConfig({}), { worker, gateway, nats });
  const nameOf = (kind: "uid" | "gid", id: number): string => [worker, gateway, nats].find((one) => one[kind] === id)?.name ?? "root";
  const wanted = directoriesOf(installed).map(({ path, mode, uid, gid }) => `d ${path} 0${mode.toString(8)} ${nameOf("uid", uid)} ${nameOf("gid", gid)}`);
  const declared = textOf("sandgate.tmpfiles").match(/^d .*$/gm) ?? [];
  assert.equal(declared.length, 4);
  for (const line of declared) assert.ok(wanted.includes(line), `${line} is not among\n${wanted.join("\n")}`);
});
