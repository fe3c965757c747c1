/** Sandgate as services of a real systemd: installed as an administrator would, used, damaged, upgraded and removed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { appDir } from "../../shared/programs.mjs";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { programDir } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";

const machine = await fixture(Machine.start("services"));
const url = "http://127.0.0.1:8080";
/** Enough for several restarts. */
const calls = 100_000;
const parts = ["sandgate-nats.service", "sandgate-worker.service", "sandgate-gateway@1.service"];
/** A loop that only goes on while nothing ends it. */
const ticker = "(while :; do echo tick >> /root/ticks; sleep 0.2; done) > /dev/null 2>&1 &";

const install = (...options: string[]): Promise<string> => machine.run(`${programDir}/systemd/install`, ...options);
const property = async (unit: string, name: string): Promise<string> => (await machine.run("systemctl", "show", `--property=${name}`, "--value", unit)).trim();
const isActive = (unit: string): Promise<boolean> =>
  machine.run("systemctl", "is-active", "--quiet", unit).then(
    () => true,
    () => false,
  );

const client = new Client((...argv) => machine.run(...argv), url, machine.key);
const create = (): Promise<string> => client.create(() => machine.run("journalctl", "-t", "sandgate-worker", "-o", "cat", "-n", "5"));

const ticks = async (id: string): Promise<number> => Number(await client.output(id, "wc -l < /root/ticks"));

/** Waits until a worker other than the one with this process answers, and its sandbox goes on. */
async function goesOn(id: string, before: number): Promise<void> {
  const seen = await until("the sandbox answers", () => ticks(id), 90_000);
  assert.ok(seen >= before, `${seen} after ${before}`);
  await until("its programs go on", async () => (await ticks(id)) > seen);
}

let id = "";

test("an installation that cannot be completed says why, and a dry run does nothing", async () => {
  const plan = await install("--dry-run");
  assert.match(plan, /Copying the program: \/usr\/lib\/sandgate/);
  await assert.rejects(machine.run("ls", "/usr/lib/sandgate"));
  await machine.shell("touch /var/lib/systemd/linger/sandgate 2> /dev/null || install -D /dev/null /var/lib/systemd/linger/sandgate");
  // There is no archive of packages to build the default image from.
  await assert.rejects(install(), (error: Error & { stdout?: string }) => /could not install mmdebstrap/.test(`${error.message}${error.stdout}`));
  await assert.rejects(install("--purge"), /status|failed|--remove/);
});

test("it installs, starts, and is ready when it says so", async () => {
  await machine.provideImage();
  await machine.shell(`echo "SANDGATE_VOLUME=${volumeDir}" >> /etc/sandgate/sandgate.env`);
  assert.match(await install(), /Sandgate runs on http:\/\/127\.0\.0\.1:8080/);
  for (const unit of parts) assert.equal(await property(unit, "ActiveState"), "active");
  id = await create();
  assert.match(await client.output(id, "id"), /uid=0\(root\)/);
  await client.output(id, `echo kept > /root/kept; ${ticker}`);
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
  for (const unit of ["sandgate-nats.service", "sandgate-gateway@1.service"]) assert.equal(await niceOf(await property(unit, "MainPID")), "-10");
  const group = (await machine.shell('cat "/proc/$(systemctl show --property=MainPID --value sandgate-worker.service)/cgroup"')).trim().split("/").at(-1) ?? "";
  const manager = 'setpriv --reuid=sandgate --regid=sandgate --init-groups env XDG_RUNTIME_DIR="/run/user/$(id -u sandgate)" systemctl --user';
  assert.equal((await machine.shell(`${manager} show --property=CPUWeight --value ${group}`)).trim(), "1000");
  const container = (await machine.shell(`${manager} list-units --no-legend --plain 'libpod-*.scope'`)).trim().split(/\s+/)[0] ?? "";
  assert.match(container, /^libpod-/);
  assert.match((await machine.shell(`${manager} show --property=CPUWeight --value ${container}`)).trim(), /^(100|\[not set\])$/);
  assert.ok(Number(await client.output(id, "nice")) >= 0);
});

test("npm start is refused while services run on the same data", async () => {
  await assert.rejects(machine.shell(`cd ${programDir} && node_modules/.bin/node build/systemd-supervisor-main.js`), (error: Error) =>
    /systemctl stop sandgate\.target/.test(JSON.stringify(error, Object.getOwnPropertyNames(error))),
  );
});

test("the helper keeps storage limits, and is started again when it was killed", async () => {
  const { exit_code } = await client.call<{ exit_code: number }>(`/v1/sandboxes/${id}/execute`, { command: "head -c 1200M /dev/zero > /root/large" });
  assert.notEqual(exit_code, 0);
  await client.output(id, "rm -f /root/large");
  await machine.run("systemctl", "kill", "--signal=KILL", "sandgate-helper@*.service");
  const other = await create();
  const over = await client.call<{ exit_code: number }>(`/v1/sandboxes/${other}/execute`, { command: "head -c 1200M /dev/zero > /root/large" });
  assert.notEqual(over.exit_code, 0);
  assert.match(await client.output(other, "cat /proc/self/uid_map"), /^\s+0\s+\d+\s+65536\n$/);
});

test("only the worker's account reaches the helper", async () => {
  const perl = "use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un('/run/sandgate/helper.socket')) or die \"$!\\n\"";
  await assert.rejects(machine.run("setpriv", "--reuid=sandgate-gateway", "--regid=sandgate-gateway", "--clear-groups", "perl", "-e", perl));
  // Root may open the socket, and is not the worker either: the helper hangs up.
  const asked = `${perl}; print $s "" ; sysread($s, my $answer, 1) and print "answered"; print "closed"`;
  assert.equal(await machine.run("perl", "-e", asked), "closed");
});

for (const [what, damage] of Object.entries({
  "systemctl restart": "systemctl restart sandgate-worker.service",
  "kill -9": 'kill -9 "$(systemctl show --property=MainPID --value sandgate-worker.service)"',
})) {
  test(`${what} of the worker leaves sandboxes and their programs running`, async () => {
    const before = await ticks(id);
    await machine.shell(damage);
    await goesOn(id, before);
  });
}

test("a worker that hangs is ended by the watchdog, and its sandboxes go on", async () => {
  await machine.shell(
    "mkdir -p /run/systemd/system/sandgate-worker.service.d; printf '[Service]\\nWatchdogSec=3\\n' > /run/systemd/system/sandgate-worker.service.d/short.conf",
  );
  await machine.shell("systemctl daemon-reload; systemctl restart sandgate-worker.service");
  const [before, pid] = [await ticks(id), await property("sandgate-worker.service", "MainPID")];
  await machine.run("kill", "-STOP", pid);
  await until("another worker", async () => !["0", pid].includes(await property("sandgate-worker.service", "MainPID")), 60_000);
  await goesOn(id, before);
});

test("a second gateway shares the port, and one of them is restarted while the other answers", async () => {
  await machine.shell("echo SANDGATE_METRICS_PORT=9465 > /etc/sandgate/gateway-2.env; systemctl start sandgate-gateway@2.service");
  assert.match(await machine.run("curl", "-sS", "http://127.0.0.1:9465/metrics"), /^# HELP/);
  const restarted = machine.run("systemctl", "restart", "sandgate-gateway@1.service");
  assert.equal(await client.output(id, "cat /root/kept"), "kept\n");
  await restarted;
  assert.equal(await client.output(id, "cat /root/kept"), "kept\n");
  await machine.run("systemctl", "stop", "sandgate-gateway@2.service");
  assert.match(await machine.run("sandgate-admin", "workers"), /wk_/);
});

test("gateways that are restarted one after the other lose no call", async (context) => {
  await machine.shell("systemctl start sandgate-gateway@2.service");
  const key = (await machine.key()).trim();
  let isOver = false;
  const load = [join(appDir, "node_modules/.bin/tsx"), join(appDir, "test/host/load/gets.ts"), `${url}/v1/sandboxes/list`, key, String(calls)];
  const loaded = machine.onItsNetwork(...load).finally(() => {
    isOver = true;
  });
  let restarts = 0;
  for (; !isOver; restarts++) await machine.run("systemctl", "restart", `sandgate-gateway@${1 + (restarts % 2)}.service`);
  assert.deepEqual(JSON.parse(await loaded), { 200: calls });
  context.diagnostic(`${restarts} restarts`);
  assert.ok(restarts >= 2, `${restarts} restarts`);
  await machine.run("systemctl", "stop", "sandgate-gateway@2.service");
});

test("an upgrade restarts the services, not the sandboxes", async () => {
  const [before, pid] = [await ticks(id), await property("sandgate-worker.service", "MainPID")];
  // As former versions have left it.
  await machine.shell("cd /var/lib/sandgate/secrets && chown root:sandgate-nats nats.key && chown root:sandgate worker-*.nk && chmod 640 nats.key worker-*.nk");
  await install();
  assert.equal(await machine.shell("cd /var/lib/sandgate/secrets && stat -c '%U:%G %a' nats.key worker-*.nk | sort -u"), "root:root 600");
  assert.notEqual(await property("sandgate-worker.service", "MainPID"), pid);
  await goesOn(id, before);
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
  const pid = await property("sandgate-gateway@1.service", "MainPID");
  for (const name of ["second.example", "third.example"]) {
    await issue(name);
    await until(`${name} is served`, async () => (await served()).includes(name), 30_000);
  }
  assert.equal(await property("sandgate-gateway@1.service", "MainPID"), pid);
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
  assert.equal(await until("the sandbox answers", () => client.output(id, "cat /root/kept"), 60_000), "kept\n");
});

test("after a power cut, everything is back with its files", async () => {
  await machine.cutPower();
  await machine.boot();
  for (const unit of parts) await until(`${unit} is active`, () => isActive(unit), 60_000);
  assert.equal(await until("the sandbox answers", () => client.output(id, "cat /root/kept"), 60_000), "kept\n");
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
  assert.match(await machine.run("cat", "/etc/sandgate/sandgate.env"), new RegExp(`SANDGATE_VOLUME=${volumeDir}`));
  assert.equal(await until("the sandbox answers", () => client.output(id, "cat /root/kept"), 90_000), "kept\n");
  assert.equal(await machine.shell("ls -d /var/lib/sandgate?* /etc/sandgate?* 2> /dev/null || true"), "");
});

test("no unit fails, and those that face others have nearly all the walls that systemd knows", async () => {
  assert.equal(await machine.shell("systemctl list-units --state=failed --no-legend 'sandgate*'"), "");
  const exposures: Record<string, string | undefined> = {};
  for (const unit of [...parts, "sandgate-cluster.service", "sandgate-helper@.service"]) {
    const named = unit.replace("@.", "@1.");
    exposures[unit] = /Overall exposure level.*: ([\d.]+)/.exec(await machine.run("systemd-analyze", "security", "--no-pager", named))?.[1];
  }
  for (const unit of ["sandgate-nats.service", "sandgate-gateway@1.service"]) assert.ok(Number(exposures[unit]) < 2, `${unit}: ${exposures[unit]}`);
  const readme = readFileSync(join(appDir, "README.md"), "utf8");
  const documented = Object.keys(exposures).map((unit) => [unit, new RegExp(`^\\|.*\`${unit}\` \\| [^|]+ \\| ([\\d.]+) \\|`, "m").exec(readme)?.[1]]);
  assert.deepEqual(Object.fromEntries(documented), exposures, "the table in the README");
});

test("sandboxes together cannot take the machine, and what serves them has a slice of its own", async () => {
  for (const unit of ["sandgate-nats.service", "sandgate-gateway@1.service"]) assert.equal(await property(unit, "Slice"), "sandgate.slice");
  assert.equal(await property("sandgate.slice", "CPUWeight"), "500");
  const slice = `user-${(await machine.run("id", "--user", "sandgate")).trim()}.slice`;
  assert.equal(await property(slice, "CPUWeight"), "20");
  const { 1: total = "" } = /^MemTotal:\s+(\d+)/.exec(await machine.run("cat", "/proc/meminfo")) ?? [];
  assert.equal(await property(slice, "MemoryMax"), String(Number(total) * 1024 - 256 * 1024 ** 2));
});

test("a removal keeps settings and data; a purge leaves nothing", async () => {
  await install("--remove");
  assert.equal(await machine.shell("ps -eo user= | grep -c '^sandgate' || true"), "0");
  await install();
  assert.equal(await until("the sandbox answers", () => client.output(id, "cat /root/kept"), 60_000), "kept\n");
  await install("--remove");
  await assert.rejects(install("--remove"), /not installed as services/);
  await install("--remove", "--purge");
  const left =
    "ls -d /var/lib/sandgate /etc/sandgate /usr/lib/sandgate /run/sandgate /etc/*.d/*sandgate* /run/systemd/system.control/user-*.slice.d /usr/local/bin/sandgate* /etc/systemd/system/sandgate* 2> /dev/null || true";
  assert.equal(await machine.shell(`${left}; getent passwd | grep sandgate || true; grep sandgate /etc/subuid /etc/subgid || true`), "");
  assert.equal(await machine.run("systemctl", "list-units", "--all", "--no-legend", "*sandgate*"), "");
  assert.doesNotMatch(await machine.run("systemd-cgls", "--all", "--no-pager"), /sandgate/);
});
