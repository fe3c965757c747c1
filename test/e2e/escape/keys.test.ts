/** Kernel keys: the service's user has 200 of them for all sandboxes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { loadConfig } from "../../../shared/config.ts";
import { findAccount } from "../../../systemd/setup/account.ts";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { expectRefused, probeOne } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));

const id = await sandboxes.make();
const { uid } = await findAccount(loadConfig());

/** The keys of the service's user, with all keyrings. */
function keyCount(): number {
  return Number(new RegExp(`^\\s*${uid}:\\s+\\d+\\s+(\\d+)/`, "m").exec(readFileSync("/proc/key-users", "utf8"))?.[1] ?? 0);
}

test("takes the user's keys with a keyring for each of 260 threads, so that no sandbox can be made", async () => {
  const script = `
answers = []
together = threading.Barrier(260)
def join():
    try: answers.append("made %d" % call("keyctl", 1, None))
    except OSError as error: answers.append(errno.errorcode[error.errno])
    together.wait()
threads = [threading.Thread(target=join) for _ in range(260)]
for thread in threads: thread.start()
for thread in threads: thread.join()
result = sorted(set(answers)) + [len(answers)]`;
  const [outcome, made] = await Promise.all([probeOne(api, id, script), sandboxes.make()]);
  assert.deepEqual(outcome, { done: ["ENOSYS", 260] });
  assert.ok(made);
});

test("takes keys as other users of its own", async () => {
  expectRefused(await probeOne(api, id, 'os.setuid(1000); result = call("add_key", b"user", b"mine", b"x", 1, -2)'), "ENOSYS");
});

test("takes a key by being made", async () => {
  const keys = keyCount();
  await Promise.all(Array.from({ length: 4 }, () => sandboxes.make()));
  await api.execute(id, "true");
  assert.equal(keyCount(), keys);
});

test("reads the keys of the host in /proc", async () => {
  assert.deepEqual(await probeOne(api, id, 'result = open("/proc/keys").read()'), { done: "" });
});
