/**
 * The Debian package: made from this checkout, unpacked, set up, put in place of itself, removed and purged by dpkg. The machine
 * says that it is Ubuntu, whose packages it does not have: nothing but what they are asked of depends on which of both it is.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandError } from "../../systemd/base/run.ts";
import { fixture } from "../helpers/fixture.ts";
import { until } from "../helpers/until.ts";
import { Client } from "./client.ts";
import { debianPackage } from "./installed.ts";
import { Machine, volumeDir } from "./machine.ts";

const made = debianPackage();
const machine = await fixture(Machine.start("package"));
const file = await machine.give(await made);
const client = new Client((...argv) => machine.run(...argv), "http://127.0.0.1:8080", machine.key);
const ticks = async (id: string): Promise<number> => Number(await client.output(id, "wc -l < /root/ticks"));

/** As Ubuntu 24.04 has it. */
const release = ["NAME=Ubuntu", 'VERSION_ID="24.04"', "VERSION_CODENAME=noble", "ID=ubuntu", "ID_LIKE=debian"];
await machine.shell(`rm -f /etc/os-release; printf '%s\\n' ${release.map((line) => `'${line}'`).join(" ")} > /etc/os-release`);

let id = "";

test("it asks the administrator to set the machine up, and does that with one command", async () => {
  assert.match(await machine.unpack(file), /sudo sandgate-install/);
  assert.equal(await machine.shell("systemctl list-unit-files --no-legend 'sandgate*' || true"), "");
  // There is no archive of packages here, of which it asks the program that makes the default image.
  const install = machine.run("/usr/sbin/sandgate-install");
  await assert.rejects(
    install,
    (error) => error instanceof CommandError && /apt could not install mmdebstrap.*archive\.ubuntu\.com\/ubuntu/s.test(error.output),
  );
  assert.match(await machine.install([], [`SANDGATE_VOLUME=${volumeDir}`], "/usr/sbin/sandgate-install"), /Sandgate runs on http/);
  id = await client.create();
  await client.output(id, "(while :; do echo tick >> /root/ticks; sleep 0.2; done) > /dev/null 2>&1 &");
});

test("a newer one takes its place while sandboxes go on", async () => {
  const pid = (): Promise<string> => machine.run("systemctl", "show", "--property=MainPID", "--value", "sandgate-worker.service");
  const [before, former] = [await ticks(id), await pid()];
  assert.match(await machine.unpack(file), /Sandgate runs on http/);
  assert.notEqual(await pid(), former);
  const seen = await until("the sandbox answers", () => ticks(id), 60_000);
  assert.ok(seen >= before);
  await until("its programs go on", async () => (await ticks(id)) > seen);
});

test("removed, it leaves settings and data; purged, nothing", async () => {
  await machine.run("dpkg", "--remove", "sandgate");
  assert.equal(await machine.shell("ps -eo user= | grep -c '^sandgate' || true"), "0");
  await machine.run("ls", "/etc/sandgate/sandgate.env", "/var/lib/sandgate/api-key");
  await machine.run("dpkg", "--purge", "sandgate");
  const places =
    "/var/lib/sandgate /etc/sandgate /usr/lib/sandgate /run/sandgate /etc/*.d/*sandgate* /usr/local/bin/sandgate* /usr/sbin/sandgate* /etc/systemd/system/sandgate*";
  assert.equal(await machine.shell(`ls -d ${places} 2> /dev/null || true; getent passwd | grep sandgate || true`), "");
  assert.equal(await machine.run("systemctl", "list-units", "--all", "--no-legend", "*sandgate*"), "");
});
