/** As many sandboxes on one worker as its setting says, while its user has no kernel key left to give to one of them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { asAccount } from "../../../systemd/base/as-account.ts";
import { Api } from "../../helpers/api.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { plain } from "../../helpers/resilience.ts";
import { startStack } from "../../helpers/stack.ts";

const count = 24;
const callsAtOnce = 16;

const stack = await fixture(startStack({ name: "many", settings: { ...plain, SANDGATE_SANDBOXES_MAX: String(count) } }));
const api = new Api(stack);

/** Takes kernel keys (add_key, into the keyring of the process) until the user that it runs as may have no more. */
const takeKeys = `
  $| = 1; my $number = (POSIX::uname())[4] eq "aarch64" ? 217 : 248; my $taken = 0;
  while (1) { last if syscall($number, my $type = "user", my $name = "test-$taken", my $payload = "x", 1, -2) < 0; $taken++; }
  print $!{EDQUOT} ? "all taken\\n" : "failed: $!\\n"; sleep 600;`;
const [file = "", ...args] = asAccount(stack.instance.account, ["perl", "-MPOSIX", "-e", takeKeys]);
const taker = spawn(file, args, { cwd: "/", stdio: ["ignore", "pipe", "inherit"] });
atEnd(() => taker.kill("SIGKILL"));
assert.equal(String((await once(taker.stdout, "data"))[0]), "all taken\n");

/** Calls for each number below `count`, a few at a time. */
async function forEach<T>(call: (number: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) results[number] = await call(number);
  };
  await Promise.all(Array.from({ length: callsAtOnce }, caller));
  return results;
}

test(`${count} sandboxes are made on one worker, run commands with threads, and are deleted`, async () => {
  // Every fifth has a network, which takes a process of its own for each.
  const ids = await forEach((number) => api.create({ network: { access: number % 5 === 0 ? "outbound" : "none" } }));
  assert.equal(new Set(ids).size, count);
  const outputs = await forEach(async (number) => (await api.execute(ids[number] ?? "", `(sleep 0; echo ${number}) | cat`)).stdout);
  assert.deepEqual(
    outputs,
    ids.map((_, number) => `${number}\n`),
  );
  const threads = "import threading; t = [threading.Thread(target=print, args=(i,)) for i in range(64)]; [x.start() for x in t]; [x.join() for x in t]";
  const { stdout } = await api.execute(ids.at(-1) ?? "", `python3 -c '${threads}' | wc -l`);
  assert.equal(stdout, "64\n");
  const { status, body } = await api.call("POST", "/v1/sandboxes/create", { image: "default" });
  assert.equal(status, 503, JSON.stringify(body));
  await forEach((number) => api.delete(ids[number] ?? ""));
  assert.deepEqual(await stack.containers(), []);
});
