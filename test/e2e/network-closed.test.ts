/** What a sandbox cannot reach: tried against real listeners on this machine. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { after, before, test } from "node:test";
import { Api } from "../helpers/api.ts";
import { Sandboxes } from "../helpers/sandboxes.ts";
import { sharedStack } from "../helpers/shared.ts";

const stack = sharedStack();
const api = new Api(stack);
const sandboxes = new Sandboxes(api);
const connections: string[] = [];
const server = createServer((socket) => {
  connections.push(`tcp from ${socket.remoteAddress}`);
  socket.end("reached");
});
const receiver = createSocket({ type: "udp6" }).on("message", (message) => connections.push(`udp ${message}`));
let outbound: string;
let none: string;
let port: number;

before(async () => {
  [outbound, none] = await Promise.all([sandboxes.make(), sandboxes.make({ network: { access: "none" } })]);
  await once(server.listen(0, "::"), "listening");
  port = (server.address() as AddressInfo).port;
  await once(receiver.bind(port, "::"), "listening");
});
after(() => {
  server.close();
  receiver.close();
});

interface Target {
  readonly host: string;
  readonly port: number;
  readonly device?: string;
}

/** What became of a connection and a datagram to each target; "connected" only where something answered. */
async function tryAll(id: string, targets: readonly Target[]): Promise<string[]> {
  const script = `
import json, socket, sys
def attempt(target):
    family = socket.AF_INET6 if ":" in target["host"] else socket.AF_INET
    try:
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            s = socket.socket(family, kind)
            s.settimeout(2)
            if target.get("device"): s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, target["device"].encode())
            try:
                s.connect((target["host"], target["port"]))
                s.send(b"from the sandbox")
                if kind == socket.SOCK_STREAM: return "connected"
            except OSError as error:
                if kind == socket.SOCK_STREAM: return str(error)
    except OSError as error:
        return str(error)
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(40) as pool: print(json.dumps(list(pool.map(attempt, json.load(sys.stdin)))))
`;
  const { stdout, stderr } = await api.execute(id, `cat > /tmp/try.py <<'END'\n${script}\nEND\npython3 /tmp/try.py <<'END'\n${JSON.stringify(targets)}\nEND`, {
    timeout: 120,
  });
  assert.equal(stderr, "");
  return JSON.parse(stdout) as string[];
}

const hostAddresses = (): string[] => Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));

/** Addresses by which the host, its networks or its neighbours might be reached. */
const closedAddresses = (): string[] => [
  ...hostAddresses(),
  ...["127.0.0.1", "127.0.0.53", "0.0.0.0", "10.0.2.2", "10.0.2.3", "10.0.2.100", "10.0.2.101", "10.88.0.1", "172.17.0.1", "172.31.255.254"],
  ...["192.168.0.1", "192.168.122.1", "100.64.0.1", "169.254.169.254", "169.254.1.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"],
  ...["::1", "::ffff:127.0.0.1", "::ffff:10.0.2.2", "fd00::2", "fe80::2", "64:ff9b::a00:202"],
];

test("a sandbox with outbound access reaches nothing of the host, its networks or its neighbours", async () => {
  const ports = [port, Number(new URL(stack.url).port), Number(new URL(stack.natsUrl).port), 22, 80];
  const targets = closedAddresses().flatMap((host) => ports.map((at) => ({ host, port: at })));
  connections.length = 0;
  const results = await tryAll(outbound, targets);
  assert.deepEqual(
    targets.filter((_, index) => results[index] === "connected"),
    [],
  );
  assert.deepEqual(connections, []);
});

test("binding to a device opens no way to the host", async () => {
  const targets = closedAddresses().flatMap((host) => ["tap0", "lo"].map((device) => ({ host, port, device })));
  connections.length = 0;
  const results = await tryAll(outbound, targets);
  assert.ok(!results.includes("connected"));
  assert.deepEqual(connections, []);
});

test("a sandbox with outbound access has an interface, a default route and a resolver outside the closed ranges' rules", async () => {
  const { stdout } = await api.execute(outbound, 'awk \'$2 == "00000000" { print "default" }\' /proc/net/route; grep -c ^nameserver /etc/resolv.conf');
  assert.match(stdout, /^default\n[1-9]/);
});

test("a sandbox cannot change its routes or rules", async () => {
  const script = `
import os, socket, struct
for protocol in (0, 12):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.bind((0, 0))
    kind = 25 if protocol == 0 else (10 << 8) | 2
    body = struct.pack("BBBBBBBBI", 2, 8, 0, 0, 254, 4, 0, 7, 0) + struct.pack("HHBBBB", 8, 1, 10, 0, 2, 2) if protocol == 0 else struct.pack("BBH", 1, 0, 0)
    s.send(struct.pack("IHHII", 16 + len(body), kind, 5, 1, 0) + body)
    answer = s.recv(4096)
    print(os.strerror(-struct.unpack("i", answer[16:20])[0]))
`;
  const { stdout, stderr } = await api.execute(outbound, `python3 - <<'END'\n${script}\nEND`);
  assert.equal(stdout, "Operation not permitted\nOperation not permitted\n", stderr);
});

test("a sandbox without network has a loopback interface only, and reaches nothing", async () => {
  const { stdout } = await api.execute(none, "ls /sys/class/net; tail -n +2 /proc/net/route; python3 -c 'import socket; print(socket.if_nameindex())'");
  assert.equal(stdout, "lo\n[(1, 'lo')]\n");
  connections.length = 0;
  const results = await tryAll(
    none,
    closedAddresses().map((host) => ({ host, port })),
  );
  assert.ok(!results.includes("connected"));
  assert.deepEqual(connections, []);
});

test("the loopback of a sandbox is its own: it works inside and is not shared with others", async () => {
  for (const id of [outbound, none]) {
    const serve = 'import socket; s = socket.create_server((\\"127.0.0.1\\", 8000)); c = s.accept()[0]; c.send(b\\"own\\"); c.close()';
    const ask =
      'import socket, time\nfor i in range(200):\n  try: print(socket.create_connection(("127.0.0.1", 8000)).recv(9).decode()); break\n  except OSError: time.sleep(0.05)';
    const { stdout } = await api.execute(id, `python3 -c "${serve}" & python3 -c '${ask}'`);
    assert.equal(stdout, "own\n");
  }
});
