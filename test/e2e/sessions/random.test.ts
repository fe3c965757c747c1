/** A minute of a client's life: what the program wrote arrives exactly, whatever happens to the connection. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { seededRandom } from "../../helpers/random.ts";
import { attach, type SessionClient, start } from "../../helpers/sessions.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const minuteMs = 60_000;
/** Well below the ring, so that what comes while nobody is attached is always still there. */
const lineBytesMax = 20_000;

/** Answers each line of input by its number and that many bytes, and tells at the end what it wrote in all. */
const program = `
import hashlib, sys, tty
digest = hashlib.sha256()
if sys.stdin.isatty(): tty.setraw(0)
total = number = 0
def write(data):
    global total
    digest.update(data)
    total += len(data)
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
write(b"R")
buffer = b""
while True:
    while b"\\n" not in buffer: buffer += sys.stdin.buffer.raw.read(65536)
    line, buffer = buffer.split(b"\\n", 1)
    if line == b"end": break
    number += 1
    size = int(line)
    write(("%d:" % number).encode() + bytes((number * 31 + i * 7) % 256 for i in range(size)))
sys.stdout.buffer.write(("%s %d %d" % (digest.hexdigest(), total, number)).encode())
`;

const stack = await fixture(startStack({ name: "session-random", gateways: 2 }));
const apis = stack.urls.map((url) => new Api({ url, apiKey: stack.apiKey }));
const id = await (apis[0] as Api).create();
await (apis[0] as Api).execute(id, `cat > /root/program.py <<'END'\n${program}\nEND`);

/** A client that keeps what it gets over any number of connections, and sends again what the session had not accepted. */
class Follower {
  readonly #random: () => number;
  readonly #received: Buffer[] = [];
  #client: SessionClient | undefined;
  #input = Buffer.alloc(0);
  #sent = 0;
  connections = 0;
  holes = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#received);
  }

  get length(): number {
    return this.#received.reduce((sum, { length }) => sum + length, 0);
  }

  get client(): SessionClient {
    if (!this.#client) throw new Error("not connected");
    return this.#client;
  }

  async begin(tty: boolean): Promise<void> {
    await this.#keep(start(this.#gateway(), id, { command: "python3 /root/program.py", tty }, (bytes) => this.#received.push(Buffer.from(bytes))));
  }

  /** Loses the connection and attaches again, through any gateway. */
  async again(): Promise<void> {
    const { client } = this;
    if (this.#random() < 0.5) client.cut();
    else client.send({ type: "detach" });
    if (this.#random() < 0.5) await sleep(this.#random() * 200);
    // What is on its way on the old connection is no longer looked at.
    client.ws.removeAllListeners("message");
    const since = this.length;
    await this.#keep(attach(this.#gateway(), id, { session_id: client.id, since, takeover: true }, (bytes) => this.#received.push(Buffer.from(bytes))));
    const accepted = this.client.started?.input_offset ?? 0;
    this.client.type(this.#input.subarray(accepted, this.#sent));
  }

  type(text: string): void {
    this.#input = Buffer.concat([this.#input, Buffer.from(text)]);
    this.#sent = this.#input.length;
    this.client.type(text);
  }

  async #keep(connecting: Promise<SessionClient>): Promise<void> {
    this.holes += this.#client?.holes.length ?? 0;
    this.#client = await connecting;
    this.connections++;
    assert.equal(this.#client.started?.writer, true);
    assert.equal(this.#client.gap, undefined);
  }

  #gateway(): Api {
    return apis[Math.floor(this.#random() * apis.length)] as Api;
  }
}

async function live(seed: number, tty: boolean): Promise<void> {
  const random = seededRandom(seed);
  const follower = new Follower(random);
  await follower.begin(tty);
  await until("the program is ready", () => follower.length > 0);
  let lines = 0;
  let expected = 1;
  for (const deadline = Date.now() + minuteMs; Date.now() < deadline; ) {
    const dice = random();
    if (dice < 0.55) {
      const size = Math.floor(random() ** 3 * lineBytesMax);
      follower.type(`${size}\n`);
      expected += `${++lines}:`.length + size;
    } else if (dice < 0.7) {
      if (tty) follower.client.send({ type: "resize", cols: 1 + Math.floor(random() * 300), rows: 1 + Math.floor(random() * 100) });
    } else if (dice < 0.85) {
      await follower.again();
    } else {
      await sleep(random() * 60);
    }
    // Never so far behind that the ring would have to forget.
    if (expected - follower.length > 500_000) await until("the output", () => expected - follower.length < 100_000);
  }
  follower.type("end\n");
  await until("the end", () => follower.client.exit);
  const all = follower.bytes;
  const report = all.subarray(expected).toString();
  assert.equal(report, `${createHash("sha256").update(all.subarray(0, expected)).digest("hex")} ${expected} ${lines}`);
  assert.equal(follower.holes + follower.client.holes.length, 0);
  assert.ok(follower.connections > 20 && lines > 100, `${follower.connections} connections, ${lines} lines`);
}

test("random writes, resizes, disconnects and reattaches reproduce exactly what was written", { concurrency: true }, async (t) => {
  await Promise.all([t.test("in a terminal", () => live(4_711, true)), t.test("through pipes", () => live(815, false))]);
});
