/** What operators do with services in use: restarts under load, certificates, backups. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { readResult } from "../../bench/load/result.ts";
import { appDir } from "../../shared/programs.mjs";
import { fixture } from "../helpers/fixture.ts";
import { temporaryFolder } from "../helpers/folder.ts";
import { until } from "../helpers/until.ts";
import { Attending, inTerminal } from "./attending.ts";
import { giveFormer } from "./former.ts";
import { calls } from "./load/restarts.ts";
import { Machine } from "./machine.ts";
import { parts, Services } from "./services.ts";

const machine = await fixture(Machine.start("operation"));
const services = new Services(machine);
/** How many calls of the load are under way at most. */
const inFlight = 20;

const former = await giveFormer(machine);
await machine.install([], [services.volume], former?.install, former?.server ? [former.server] : []);
const id = await services.createBusy();
const attending = await Attending.on(machine, services.client);

test("an upgrade from a former version: sandboxes, their programs and snapshots go on, and what is cut off says so", async (context) => {
  context.diagnostic(former ? `from ${former.name}` : "this is no checkout with a history, so it is from this version");
  if (former && !former.server) context.diagnostic("without an exec server of that version, which could not be made here");
  const { client } = services;
  const { id: snapshot } = await client.call<{ id: string }>(`/v1/sandboxes/${id}/snapshot`, {});
  const other = await services.create();
  await attending.attend(id, inTerminal, { see: "# " }, { type: "echo typed''-it\r" }, { see: "typed-it" });
  const [session] = await attending.sessionsOf(id);
  const stream = client.text(`/v1/sandboxes/${id}/execute_async`, { command: "echo run >> /root/runs; while :; do echo tock; sleep 0.3; done" });
  const call = client.call<{ exit_code: number; stdout: string }>(`/v1/sandboxes/${id}/execute`, { command: "echo run >> /root/runs; sleep 5; echo done" });
  await until("both commands run", async () => (await client.output(id, "cat /root/runs")) === "run\nrun\n");
  const [before, pid] = [await services.ticks(id), await services.property("sandgate-worker.service", "MainPID")];

  await services.install();
  assert.notEqual(await services.property("sandgate-worker.service", "MainPID"), pid);
  assert.match((await stream).trim().split("\n").at(-1) ?? "", /"code":"(unavailable|worker_lost)"/);
  const { exit_code, stdout } = await call;
  assert.deepEqual({ exit_code, stdout }, { exit_code: 0, stdout: "done\n" }, "a call in progress is finished first");
  await services.goesOn(id, before);
  await until("what was cut off is ended", async () => (await client.output(id, "pgrep -fc '[t]ock' || true")) === "0\n");
  assert.equal(await client.output(id, "cat /root/runs"), "run\nrun\n");
  const { error } = await attending.attend(id, { type: "attach", session_id: session?.session_id }, { end: true });
  assert.equal(error?.code, "not_found");
  const { exit } = await attending.attend(id, inTerminal, { see: "# " }, { type: "exit 4\r" }, { end: true });
  assert.equal(exit?.exit_code, 4);
  await client.upload(id, "/root/uploaded", "new\n");
  assert.equal(await client.output(id, "cat /root/uploaded"), "new\n");
  assert.equal(await client.text(`/v1/sandboxes/${id}/download?path=/root/kept`), "kept");
  for (const taken of [snapshot, (await client.call<{ id: string }>(`/v1/sandboxes/${id}/snapshot`, {})).id]) {
    const restored = await client.call<{ id: string }>(`/v1/snapshots/${taken}/restore`, {});
    await services.isKept(restored.id);
    await client.delete(`/v1/sandboxes/${restored.id}/delete`);
  }
  await client.delete(`/v1/sandboxes/${other}/delete`);
});

test("gateways that are restarted one after the other lose no call of any kind", async (context) => {
  await machine.shell("echo SANDGATE_METRICS_PORT=9465 > /etc/sandgate/gateway-2.env; systemctl start sandgate-gateway@2.service");
  using folder = temporaryFolder("restarts");
  const written = join(folder.path, "result.json");
  const place = ["--url", services.url, "--key", (await machine.key()).trim(), "--mix", join(appDir, "test/host/load/restarts.ts")];
  const load = [process.execPath, join(appDir, "bench/run.mjs"), join(appDir, "bench/load/main.ts"), ...place];
  let isOver = false;
  const loaded = machine.onItsNetwork(...load, "--in-flight", String(inFlight), "--json", written).finally(() => {
    isOver = true;
  });
  let restarts = 0;
  for (; !isOver; restarts++) await machine.run("systemctl", "restart", `sandgate-gateway@${1 + (restarts % 2)}.service`);
  await loaded;
  const { rows, messages, leftOver, isComplete } = readResult(written);
  const actions = rows.filter(({ isMark }) => !isMark);
  context.diagnostic(`${restarts} restarts; ${actions.map(({ name, count }) => `${count} ${name}`).join(", ")}`);
  const failed = rows.filter(({ failures }) => failures > 0).map(({ name, errors }) => ({ name, errors }));
  assert.deepEqual({ failed, messages, leftOver, isComplete }, { failed: [], messages: {}, leftOver: [], isComplete: true });
  assert.equal(
    actions.reduce((sum, { count }) => sum + count, 0),
    calls,
  );
  for (const { name, count } of actions) assert.ok(count > 0, name);
  assert.ok(restarts >= 2, `${restarts} restarts`);
  await machine.run("systemctl", "stop", "sandgate-gateway@2.service");
});

test("a certificate whose key only root can read serves HTTPS, and a new one is taken up while the gateway goes on", async () => {
  const issue = (name: string): Promise<string> =>
    machine.shell(`mkdir -p -m 0700 /root/tls.new; cd /root/tls.new
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name} -addext subjectAltName=DNS:${name} -days 2 -keyout key.pem -out cert.pem 2> /dev/null
      chmod 0600 key.pem cert.pem; mkdir -p -m 0700 /root/tls; mv cert.pem /root/tls; sleep 2; mv key.pem /root/tls`);
  const served = (): Promise<string> => machine.shell("openssl s_client -connect 127.0.0.1:8080 < /dev/null 2> /dev/null | openssl x509 -noout -subject");
  await issue("first.example");
  await machine.shell(
    "cp /etc/sandgate/sandgate.env /root/without-tls; (echo SANDGATE_TLS_CERTIFICATE=/root/tls/cert.pem; echo SANDGATE_TLS_KEY=/root/tls/key.pem) >> /etc/sandgate/sandgate.env",
  );
  await machine.run("systemctl", "restart", "sandgate-setup.service");
  await until("HTTPS is served", async () => /first\.example/.test(await served()), 30_000);
  const pid = await services.property("sandgate-gateway@1.service", "MainPID");
  for (const name of ["second.example", "third.example"]) {
    await issue(name);
    await until(`${name} is served`, async () => (await served()).includes(name), 30_000);
  }
  assert.equal(await services.property("sandgate-gateway@1.service", "MainPID"), pid);
  await assert.rejects(
    machine.run("setpriv", "--reuid=sandgate", "--regid=sandgate", "--clear-groups", "cat", "/run/sandgate/tls/key.pem"),
    /Permission denied/,
  );
  await machine.run("rm", "/root/tls/key.pem");
  await assert.rejects(machine.run("systemctl", "restart", "sandgate-setup.service"));
  assert.match(
    await machine.run("journalctl", "-t", "sandgate-setup", "-o", "cat", "-n", "5"),
    /SANDGATE_TLS_CERTIFICATE and SANDGATE_TLS_KEY cannot be used: .*key\.pem/,
  );
  await machine.shell(
    "mv /root/without-tls /etc/sandgate/sandgate.env; systemctl reset-failed sandgate-setup.service; systemctl start sandgate-setup.service sandgate.target",
  );
  await services.isKept(id);
});

test("a machine that is shut down finishes calls, stops everything in order and in time, and has its sandboxes after the boot", async () => {
  const { client } = services;
  await client.output(id, "rm -f /root/runs");
  const stream = client.text(`/v1/sandboxes/${id}/execute_async`, { command: "echo run >> /root/runs; while :; do echo tock; sleep 0.3; done" });
  const call = client.call<{ exit_code: number; stdout: string }>(`/v1/sandboxes/${id}/execute`, { command: "echo run >> /root/runs; sleep 5; echo done" });
  await until("both commands run", async () => (await client.output(id, "cat /root/runs")) === "run\nrun\n");
  const account = `user@${(await machine.run("id", "--user", "sandgate")).trim()}.service`;
  await machine.shell("mkdir -p /var/log/journal; journalctl --flush");
  const since = await machine.run("date", "+@%s");
  await machine.shutDown();
  assert.match((await stream).trim().split("\n").at(-1) ?? "", /"code":"(unavailable|worker_lost)"/);
  const { exit_code, stdout } = await call;
  assert.deepEqual({ exit_code, stdout }, { exit_code: 0, stdout: "done\n" });

  await machine.boot();
  for (const unit of parts) await until(`${unit} is active`, () => services.isActive(unit), 60_000);
  await services.isKept(id);
  assert.equal(await client.output(id, "cat /root/runs"), "run\nrun\n");
  assert.equal(await machine.shell("systemctl list-units --state=failed --no-legend 'sandgate*'"), "");

  const said = await machine.run("journalctl", "_PID=1", "--since", since.trim(), "-o", "cat", "--no-pager");
  const at = (text: string): number => (said.includes(text) ? said.indexOf(text) : assert.fail(`${text} is not in\n${said}`));
  for (const unit of ["sandgate-worker.service", "sandgate-gateway@1.service"]) assert.ok(at(`Stopped ${unit}`) < at("Stopping sandgate-nats.service"), said);
  assert.ok(at("Stopped sandgate-worker.service") < at(`Stopping ${account}`), said);
  // It ends with the worker, and is not stopped before.
  assert.ok(at("Stopped sandgate-worker.service") < `${said}Stopping sandgate-helper@`.indexOf("Stopping sandgate-helper@"), said);
  assert.ok(at("Stopped sandgate-nats.service") < at("Stopping sandgate-setup.service"), said);
  assert.doesNotMatch(said, /^(sandgate|user@)\S*: (.*timed out|Failed with result|.*Killing)/m);
});

test("a backup made while it runs is restored when all but the files of sandboxes is lost", async () => {
  const admin = (...args: string[]): Promise<string> => machine.run("sandgate-admin", ...args);
  const key = await machine.run("cat", "/var/lib/sandgate/api-key");
  await machine.shell(`mkdir -m 0700 /root/elsewhere; cp /var/lib/sandgate/api-key /root/elsewhere/key; install -m 0644 /var/lib/sandgate/secrets/nats.crt /etc/sandgate/shown.crt
    echo SANDGATE_BOOTSTRAP_API_KEY_FILE=/root/elsewhere/key >> /etc/sandgate/sandgate.env`);
  await admin("backup", "/root/backup");
  await assert.rejects(admin("restore", "/root/backup"), /Stop everything first/);
  await machine.shell('systemctl stop sandgate.target sandgate-setup.service; systemctl stop "user@$(id -u sandgate).service"');
  await assert.rejects(admin("restore", "/root/backup"), /There is an installation already: \/var\/lib\/sandgate, \/etc\/sandgate/);
  // Where there is no archive of packages, a start cannot make the image again.
  await machine.shell(
    "cd /var/lib/sandgate && mkdir /var/lib/kept && mv containers podman home /var/lib/kept && cd / && rm -r /var/lib/sandgate /etc/sandgate /root/elsewhere",
  );
  assert.match(await admin("restore", "/root/backup"), /is as it was at .*systemctl start/s);
  await machine.shell("cd /var/lib/sandgate && rm -rf containers podman home && mv /var/lib/kept/* . && rmdir /var/lib/kept");
  await machine.run("systemctl", "start", "sandgate-setup.service", "sandgate.target");
  assert.deepEqual([await machine.run("cat", "/var/lib/sandgate/api-key"), await machine.run("cat", "/root/elsewhere/key")], [key, key]);
  const owners = await machine.run("stat", "--format=%a %U:%G %n", "/root/elsewhere/key", "/etc/sandgate/shown.crt", "/etc/sandgate/sandgate.env");
  assert.equal(owners, "600 root:root /root/elsewhere/key\n644 root:root /etc/sandgate/shown.crt\n600 root:root /etc/sandgate/sandgate.env");
  assert.match(await machine.run("cat", "/etc/sandgate/sandgate.env"), new RegExp(services.volume));
  await services.isKept(id);
  assert.equal(await machine.shell("ls -d /var/lib/sandgate?* /etc/sandgate?* 2> /dev/null || true"), "");
});
