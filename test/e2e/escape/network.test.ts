/** What a sandbox cannot reach: tried against real listeners on this machine. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { expectRefused, type Outcome, probe, probeOne } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const stack = sharedStack();
const api = new Api(stack);
const sandboxes = fixture(new Sandboxes(api));
const connections: string[] = [];
const server = createServer((socket) => {
  connections.push(`tcp from ${socket.remoteAddress}`);
  socket.end("reached");
});
const receiver = createSocket({ type: "udp6" }).on("message", (message) => connections.push(`udp ${message}`));

const [outbound, none] = await Promise.all([sandboxes.make(), sandboxes.make({ network: { access: "none" } })]);
await once(server.listen(0, "::"), "listening");
const port = (server.address() as AddressInfo).port;
await once(receiver.bind(port, "::"), "listening");
atEnd(() => {
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

test("connects to the host, its networks and its neighbours", async () => {
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

test("binds to a device to get around the rules", async () => {
  const targets = closedAddresses().flatMap((host) => ["tap0", "lo"].map((device) => ({ host, port, device })));
  connections.length = 0;
  const results = await tryAll(outbound, targets);
  assert.ok(!results.includes("connected"));
  assert.deepEqual(connections, []);
});

/** Where clouds give machines their keys and settings. */
const metadataAddresses = {
  "AWS, Google, Azure, Oracle, IBM, DigitalOcean, OpenStack, Hetzner": "169.254.169.254",
  "AWS containers": "169.254.170.2",
  "AWS pods": "169.254.170.23",
  "Azure's platform": "168.63.129.16",
  Alibaba: "100.100.100.200",
  "Oracle, classic": "192.0.0.192",
  Tencent: "169.254.0.23",
  Scaleway: "169.254.42.42",
};

/** Whether the sandbox's own kernel refuses a datagram to an address, or lets it out. */
const whoRefuses = (address: string): string => `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_IP, 11, 1)
s.settimeout(3)
s.connect((${JSON.stringify(address)}, 80))
s.send(b"x")
own = s.getsockname()[0]
result = "let out"
for _ in range(30):
    try: _, notes, _, _ = s.recvmsg(64, 512, socket.MSG_ERRQUEUE)
    except BlockingIOError: time.sleep(0.05); continue
    offender = socket.inet_ntoa(notes[0][2][20:24])
    if offender == own: raise OSError(errno.ECONNREFUSED, "refused in the sandbox")
    break`;

for (const [cloud, address] of Object.entries(metadataAddresses)) {
  test(`asks ${address}, the metadata of ${cloud}`, async () => {
    // Rules refuse what is sent; routes the connection.
    expectRefused(await probeOne(api, outbound, whoRefuses(address)), "EPERM", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH");
  });
}

test("asks metadata addresses of IPv6 (AWS, Google)", async () => {
  const sources = Object.fromEntries(["fd00:ec2::254", "fd20:ce::254"].map((address) => [address, `socket.create_connection(("${address}", 80), 5)`]));
  for (const outcome of Object.values<Outcome>(await probe(api, outbound, sources)))
    expectRefused(outcome, "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL");
});

test("control: the internet is not taken for one of them", async () => {
  assert.deepEqual(await probeOne(api, outbound, whoRefuses("8.8.8.8")), { done: "let out" });
});

test("reaches another tenant's sandbox by every address it has", async () => {
  const other = await sandboxes.make();
  const serve = "import socket\ns = socket.create_server(('', 8000))\nwhile True: c = s.accept()[0]; c.send(b'theirs'); c.close()";
  const { stdout } = await api.execute(
    other,
    `setsid python3 -c "${serve}" > /dev/null 2>&1 & python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("8.8.8.8", 1)); print(s.getsockname()[0])'`,
  );
  const address = stdout.trim();
  assert.match(address, /^\d+\.\d+\.\d+\.\d+$/);
  const ask = `
for _ in range(100):
    try: result = socket.create_connection(("${address}", 8000), 2).recv(9).decode(); break
    except ConnectionRefusedError: time.sleep(0.05)`;
  assert.deepEqual(await probeOne(api, other, ask), { done: "theirs" });
  // The same address is our own here.
  expectRefused(await probeOne(api, outbound, `socket.create_connection(("${address}", 8000), 2)`), "ECONNREFUSED");
});

test("control: its interface, default route and resolver are there, outside the closed ranges' rules", async () => {
  const { stdout } = await api.execute(outbound, 'awk \'$2 == "00000000" { print "default" }\' /proc/net/route; grep -c ^nameserver /etc/resolv.conf');
  assert.match(stdout, /^default\n[1-9]/);
});

test("changes its routes", async () => {
  const script = `
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.bind((0, 0))
body = struct.pack("BBBBBBBBI", 2, 8, 0, 0, 254, 4, 0, 7, 0) + struct.pack("HHBBBB", 8, 1, 10, 0, 2, 2)
s.send(struct.pack("IHHII", 16 + len(body), 25, 5, 1, 0) + body)
code = -struct.unpack("i", s.recv(4096)[16:20])[0]
if code: raise OSError(code, "")`;
  expectRefused(await probeOne(api, outbound, script), "EPERM");
});

test("changes the rules of its firewall", async () => {
  expectRefused(await probeOne(api, outbound, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)"), "EPROTONOSUPPORT");
});

test("connects to anything where it has no network", async () => {
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

test("reaches others by the loopback, which works inside", async () => {
  for (const id of [outbound, none]) {
    const serve = 'import socket; s = socket.create_server((\\"127.0.0.1\\", 8000)); c = s.accept()[0]; c.send(b\\"own\\"); c.close()';
    const ask =
      'import socket, time\nfor i in range(200):\n  try: print(socket.create_connection(("127.0.0.1", 8000)).recv(9).decode()); break\n  except OSError: time.sleep(0.05)';
    const { stdout } = await api.execute(id, `python3 -c "${serve}" & python3 -c '${ask}'`);
    assert.equal(stdout, "own\n");
  }
});
