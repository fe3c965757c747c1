/** Sandgate as services of a real systemd: installed as an administrator would, used, damaged, upgraded and removed. Part of `npm test`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { appDir } from "../../shared/programs.mjs";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { programDir } from "./installed.ts";
import { Machine } from "./machine.ts";
import { parts, Services } from "./services.ts";

const machine = await fixture(Machine.start("services"));
const services = new Services(machine);

let id = "";

test("an installation that cannot be completed says why, and a dry run does nothing", async () => {
  const plan = await services.install("--dry-run");
  assert.match(plan, /Copying the program: \/usr\/lib\/sandgate/);
  await assert.rejects(machine.run("ls", "/usr/lib/sandgate"));
  await machine.shell("touch /var/lib/systemd/linger/sandgate 2> /dev/null || install -D /dev/null /var/lib/systemd/linger/sandgate");
  // There is no archive of packages to build the default image from.
  await assert.rejects(services.install(), (error: Error & { stdout?: string }) => /could not install mmdebstrap/.test(`${error.message}${error.stdout}`));
  await assert.rejects(services.install("--purge"), /status|failed|--remove/);
});

test("it installs, starts, and is ready when it says so", async () => {
  await machine.provideImage();
  await machine.shell(`(echo ${services.volume}; echo SANDGATE_DRAIN_MS=1000) >> /etc/sandgate/sandgate.env`);
  assert.match(await services.install(), /Sandgate runs on http:\/\/127\.0\.0\.1:8080/);
  for (const unit of parts) assert.equal(await services.property(unit, "ActiveState"), "active");
  id = await services.createBusy();
  assert.match(await services.client.output(id, "id"), /uid=0\(root\)/);
  assert.match(await machine.run("sandgate-admin", "workers"), /wk_/);
});

test("secrets are root's alone, and each unit has its own as credentials", async () => {
  const shared = "find /var/lib/sandgate/secrets /run/sandgate/credentials -type f ! -perm -o+r \\( ! -user root -o ! -group root -o -perm /077 \\)";
  assert.equal(await machine.shell(shared), "");
  const own = { "sandgate-nats.service": "nats", "sandgate-worker.service": "", "sandgate-gateway@1.service": "gateway" };
  const given: Record<string, string[]> = {};
  for (const unit of parts) given[unit] = (await machine.run("ls", `/run/credentials/${unit}`)).split("\n");
  assert.deepEqual(given, {
    "sandgate-nats.service": ["sandgate_nats.key"],
    "sandgate-worker.service": ["sandgate_nats-nkey"],
    "sandgate-gateway@1.service": ["sandgate_bootstrap-api-key", "sandgate_nats-nkey"],
  });
  for (const [unit, names] of Object.entries(given)) {
    for (const [reader, suffix] of Object.entries(own)) {
      const account = ["sandgate", suffix].filter(Boolean).join("-");
      const read = machine.run("setpriv", `--reuid=${account}`, `--regid=${account}`, "--clear-groups", "cat", `/run/credentials/${unit}/${names[0]}`);
      if (reader === unit) await read;
      else await assert.rejects(read, /Permission denied/, `${account} reads ${unit}`);
    }
  }
  assert.equal(await machine.shell("grep -El 'BEGIN|sg_|^SU' /run/sandgate/*.env /var/lib/sandgate/nats.conf || true"), "");
});

test("the services come before sandboxes when all want the CPU, and sandboxes do not inherit that", async () => {
  const niceOf = async (pid: string): Promise<string> => (await machine.run("ps", "-o", "ni=", "-p", pid)).trim();
  for (const unit of ["sandgate-nats.service", "sandgate-gateway@1.service"]) assert.equal(await niceOf(await services.property(unit, "MainPID")), "-10");
  const group = (await machine.shell('cat "/proc/$(systemctl show --property=MainPID --value sandgate-worker.service)/cgroup"')).trim().split("/").at(-1) ?? "";
  const manager = 'setpriv --reuid=sandgate --regid=sandgate --init-groups env XDG_RUNTIME_DIR="/run/user/$(id -u sandgate)" systemctl --user';
  assert.equal((await machine.shell(`${manager} show --property=CPUWeight --value ${group}`)).trim(), "1000");
  const container = (await machine.shell(`${manager} list-units --no-legend --plain 'libpod-*.scope'`)).trim().split(/\s+/)[0] ?? "";
  assert.match(container, /^libpod-/);
  assert.match((await machine.shell(`${manager} show --property=CPUWeight --value ${container}`)).trim(), /^(100|\[not set\])$/);
  assert.ok(Number(await services.client.output(id, "nice")) >= 0);
});

test("npm start is refused while services run on the same data", async () => {
  await assert.rejects(machine.shell(`cd ${programDir} && node_modules/.bin/node build/systemd-supervisor-main.js`), (error: Error) =>
    /systemctl stop sandgate\.target/.test(JSON.stringify(error, Object.getOwnPropertyNames(error))),
  );
});

test("the helper keeps storage limits, and is started again when it was killed", async () => {
  const fits = async (sandbox: string): Promise<boolean> => {
    // Nearly all is taken without being written.
    await services.client.output(sandbox, "fallocate -l 900M /root/taken");
    const command = "head -c 200M /dev/zero > /root/more";
    const { exit_code } = await services.client.call<{ exit_code: number }>(`/v1/sandboxes/${sandbox}/execute`, { command });
    return (await services.client.output(sandbox, "stat -c %s /root/taken; rm -f /root/taken /root/more")) === `${900 * 1024 ** 2}\n` && exit_code === 0;
  };
  assert.equal(await fits(id), false);
  const helpers = async (): Promise<string[]> => (await machine.shell("pgrep -f [h]elper-main || true")).split("\n").filter(Boolean);
  const killed = await helpers();
  assert.notDeepEqual(killed, []);
  await machine.run("systemctl", "kill", "--signal=KILL", "sandgate-helper@*.service");
  await until("it has ended", async () => !(await helpers()).some((pid) => killed.includes(pid)));
  const other = await services.create();
  assert.equal(await fits(other), false);
  assert.match(await services.client.output(other, "cat /proc/self/uid_map"), /^\s+0\s+\d+\s+65536\n$/);
});

test("only the worker's account reaches the helper", async () => {
  const perl = "use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un('/run/sandgate/helper.socket')) or die \"$!\\n\"";
  await assert.rejects(machine.run("setpriv", "--reuid=sandgate-gateway", "--regid=sandgate-gateway", "--clear-groups", "perl", "-e", perl));
  // Root may open the socket, and is not the worker either: the helper hangs up.
  const asked = `${perl}; print $s "" ; sysread($s, my $answer, 1) and print "answered"; print "closed"`;
  assert.equal(await machine.run("perl", "-e", asked), "closed");
});

for (const [what, damage] of Object.entries({
  "systemctl restart of the worker": "systemctl restart sandgate-worker.service",
  "kill -9 of the worker": 'kill -9 "$(systemctl show --property=MainPID --value sandgate-worker.service)"',
  "systemctl restart of the gateway": "systemctl restart sandgate-gateway@1.service",
})) {
  test(`${what}: streams end with the reason, and sandboxes and their programs go on`, async () => {
    const before = await services.ticks(id);
    const stream = services.client.text(`/v1/sandboxes/${id}/execute_async`, { command: "echo run >> /root/runs; while :; do echo tock; sleep 0.3; done" });
    await until("the command runs", async () => (await services.client.output(id, "[ -s /root/runs ] && cat /root/runs && rm /root/runs")) === "run\n");
    await machine.shell(damage);
    assert.match((await stream).trim().split("\n").at(-1) ?? "", /"code":"(unavailable|worker_lost)"/);
    await services.goesOn(id, before);
    await until("its command is ended", async () => (await services.client.output(id, "pgrep -fc '[t]ock' || true")) === "0\n");
    assert.equal(await services.client.output(id, "cat /root/runs 2> /dev/null || echo not run again"), "not run again\n");
  });
}

test("a second gateway shares the port, and one of them is restarted while the other answers", async () => {
  await machine.shell("echo SANDGATE_METRICS_PORT=9465 > /etc/sandgate/gateway-2.env; systemctl start sandgate-gateway@2.service");
  assert.match(await machine.run("curl", "-sS", "http://127.0.0.1:9465/metrics"), /^# HELP/);
  const restarted = machine.run("systemctl", "restart", "sandgate-gateway@1.service");
  assert.equal(await services.client.output(id, "cat /root/kept"), "kept\n");
  await restarted;
  assert.equal(await services.client.output(id, "cat /root/kept"), "kept\n");
  await machine.run("systemctl", "stop", "sandgate-gateway@2.service");
  assert.match(await machine.run("sandgate-admin", "workers"), /wk_/);
});

for (const unit of parts) {
  test(`${unit} that hangs is ended by the watchdog, and sandboxes go on`, async () => {
    const given = `/run/systemd/system/${unit}.d`;
    await machine.shell(`mkdir ${given}; printf '[Service]\\nWatchdogSec=5\\n' > ${given}/short.conf`);
    await machine.shell(`systemctl daemon-reload; systemctl restart ${unit}`);
    const [before, pid] = [await until("the sandbox answers", () => services.ticks(id)), await services.property(unit, "MainPID")];
    await machine.run("kill", "-STOP", pid);
    await until("another process", async () => !["0", pid].includes(await services.property(unit, "MainPID")), 60_000);
    await services.goesOn(id, before);
    assert.equal(await services.property(unit, "NRestarts"), "1");
    await machine.shell(`rm -r ${given}; systemctl daemon-reload`);
  });
}

test("the NATS server is active only when it takes connections, and its log does not tell of who looks whether it does", async () => {
  await machine.run("systemctl", "restart", "sandgate-nats.service");
  await machine.run("perl", "-MIO::Socket::INET", "-e", "IO::Socket::INET->new('127.0.0.1:4223') or die");
  assert.equal(await machine.shell("journalctl -t sandgate-nats -o cat | grep 'handshake error: EOF' || true"), "");
});

test("an installation in place of itself restarts the services, not the sandboxes", async () => {
  const [before, pid] = [await services.ticks(id), await services.property("sandgate-worker.service", "MainPID")];
  // As former versions have left it.
  await machine.shell("cd /var/lib/sandgate/secrets && chown root:sandgate-nats nats.key && chown root:sandgate worker-*.nk && chmod 640 nats.key worker-*.nk");
  await services.install();
  assert.equal(await machine.shell("cd /var/lib/sandgate/secrets && stat -c '%U:%G %a' nats.key worker-*.nk | sort -u"), "root:root 600");
  assert.notEqual(await services.property("sandgate-worker.service", "MainPID"), pid);
  await services.goesOn(id, before);
});

test("after a power cut, everything is back with its files", async () => {
  await machine.cutPower();
  await machine.boot();
  for (const unit of parts) await until(`${unit} is active`, () => services.isActive(unit), 60_000);
  await services.isKept(id);
});

test("no unit fails, and those that face others have nearly all the walls that systemd knows", async () => {
  assert.equal(await machine.shell("systemctl list-units --state=failed --no-legend 'sandgate*'"), "");
  const exposures: Record<string, string | undefined> = {};
  for (const unit of ["sandgate-setup.service", ...parts, "sandgate-cluster.service", "sandgate-helper@.service"]) {
    const named = unit.replace("@.", "@1.");
    exposures[unit] = /Overall exposure level.*: ([\d.]+)/.exec(await machine.run("systemd-analyze", "security", "--no-pager", named))?.[1];
  }
  for (const unit of ["sandgate-nats.service", "sandgate-gateway@1.service"]) assert.ok(Number(exposures[unit]) < 2, `${unit}: ${exposures[unit]}`);
  const readme = readFileSync(join(appDir, "README.md"), "utf8");
  const documented = Object.keys(exposures).map((unit) => [unit, new RegExp(`^\\|.*\`${unit}\` \\| [^|]+ \\| ([\\d.]+) \\|`, "m").exec(readme)?.[1]]);
  assert.deepEqual(Object.fromEntries(documented), exposures, "the table in the README");
});

test("the journal keeps every line of gateway and worker", async () => {
  // There journald finds the limit of the unit in whose group a process is; without one, its own holds.
  for (const unit of ["sandgate-gateway@1.service", `user@${(await machine.run("id", "--user", "sandgate")).trim()}.service`])
    assert.equal(await machine.run("readlink", `/run/systemd/units/log-rate-limit-burst:${unit}`), "1000000");
});

test("sandboxes together cannot take the machine, and what serves them has a slice of its own", async () => {
  for (const unit of ["sandgate-nats.service", "sandgate-gateway@1.service"]) assert.equal(await services.property(unit, "Slice"), "sandgate.slice");
  assert.equal(await services.property("sandgate.slice", "CPUWeight"), "500");
  const uid = (await machine.run("id", "--user", "sandgate")).trim();
  const controllers = await services.property(`user@${uid}.service`, "DelegateControllers");
  for (const controller of ["cpu", "cpuset", "io", "memory", "pids"]) assert.ok(controllers.split(" ").includes(controller), controllers);
  const slice = `user-${uid}.slice`;
  assert.equal(await services.property(slice, "CPUWeight"), "20");
  const { 1: total = "" } = /^MemTotal:\s+(\d+)/.exec(await machine.run("cat", "/proc/meminfo")) ?? [];
  assert.equal(await services.property(slice, "MemoryMax"), String(Number(total) * 1024 - 256 * 1024 ** 2));
});

test("a removal keeps settings and data; a purge leaves nothing", async () => {
  await services.install("--remove");
  assert.equal(await machine.shell("ps -eo user= | grep -c '^sandgate' || true"), "0");
  await assert.rejects(services.install("--remove"), /not installed as services/);
  await services.install();
  await services.isKept(id);
  await services.install("--remove", "--purge");
  const left =
    "ls -d /var/lib/sandgate /etc/sandgate /usr/lib/sandgate /run/sandgate /etc/*.d/*sandgate* /run/systemd/system.control/user-*.slice.d /usr/local/bin/sandgate* /etc/systemd/system/sandgate* /etc/systemd/system/user@* 2> /dev/null || true";
  assert.equal(await machine.shell(`${left}; getent passwd | grep sandgate || true; grep sandgate /etc/subuid /etc/subgid || true`), "");
  assert.equal(await machine.run("systemctl", "list-units", "--all", "--no-legend", "*sandgate*"), "");
  assert.doesNotMatch(await machine.run("systemd-cgls", "--all", "--no-pager"), /sandgate/);
});
