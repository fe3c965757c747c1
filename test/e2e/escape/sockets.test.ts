/** Sockets of families and kinds that lead elsewhere than to the internet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { fixture } from "../../helpers/fixture.ts";
import { podmanSockets } from "../../helpers/podman-sockets.ts";
import { preparedInstance } from "../../helpers/prepare.ts";
import { expectRefused, probe, probeOne } from "../../helpers/probes.ts";
import { Sandboxes } from "../../helpers/sandboxes.ts";
import { sharedStack } from "../../helpers/shared.ts";

const api = new Api(sharedStack());
const sandboxes = fixture(new Sandboxes(api));
const ids: Record<string, string> = {};

const made = ["outbound", "none"].map(async (access) => {
  ids[access] = await sandboxes.make({ network: { access } });
});
await Promise.all(made);

const idOf = (access: string): string => ids[access] ?? assert.fail("the sandbox was made");

for (const access of ["outbound", "none"]) {
  test(`opens AF_VSOCK, the way to the hypervisor and to neighbours (network: ${access})`, async () => {
    const attempts = { stream: 1, datagram: 2, sequence: 5 };
    const sources = Object.fromEntries(Object.entries(attempts).map(([name, type]) => [name, `socket.socket(40, ${type}, 0)`]));
    for (const outcome of Object.values(await probe(api, idOf(access), sources))) expectRefused(outcome, "EAFNOSUPPORT");
  });

  test(`opens any other family than local, internet and netlink (network: ${access})`, async () => {
    const script = `
result = {}
for family in range(0, 64):
    for kind in (1, 2, 3, 5):
        try: socket.socket(family, kind, 0); answer = "opened"
        except OSError as error: answer = errno.errorcode[error.errno]
        result.setdefault(family, []).append(answer)`;
    const outcome = await probeOne(api, idOf(access), script);
    assert.ok("done" in outcome);
    const answers = Object.entries(outcome.done as Record<string, string[]>);
    assert.equal(answers.length, 64);
    const others = answers.filter(([, said]) => said.some((answer) => answer !== "EAFNOSUPPORT"));
    assert.deepEqual(
      others.map(([family]) => Number(family)),
      [1, 2, 10, 16],
    );
  });
}

const netlink = Array.from({ length: 32 }, (_, protocol) => protocol).filter((protocol) => protocol !== 0);
test("opens netlink to anything but routes (audit, firewall, devices and so on)", async () => {
  const sources = Object.fromEntries(netlink.map((protocol) => [String(protocol), `socket.socket(16, 3, ${protocol})`]));
  for (const outcome of Object.values(await probe(api, idOf("outbound"), sources))) expectRefused(outcome, "EPROTONOSUPPORT");
});

test("loads a rare protocol (SCTP, DCCP, MPTCP, SMC)", async () => {
  const sources = Object.fromEntries([132, 33, 262, 256].flatMap((protocol) => [2, 10].map((family) => [`${family} ${protocol}`, [family, protocol]])));
  const attempts = Object.fromEntries(Object.entries(sources).map(([name, [family, protocol]]) => [name, `socket.socket(${family}, 1, ${protocol})`]));
  for (const outcome of Object.values(await probe(api, idOf("outbound"), attempts))) expectRefused(outcome, "EPROTONOSUPPORT");
});

test("hides the family's number behind bits that the kernel ignores", async () => {
  const nr = process.arch === "x64" ? 41 : 198;
  expectRefused(await probeOne(api, idOf("outbound"), `result = call(${nr}, 40 | 1 << 32, 1, 0)`), "EAFNOSUPPORT");
});

test("makes a pair of sockets of another family than local", async () => {
  const nr = process.arch === "x64" ? 53 : 199;
  expectRefused(await probeOne(api, idOf("outbound"), `result = call(${nr}, 30, 1, 0, bytes(8))`), "EAFNOSUPPORT");
});

const raw: Record<string, string> = {
  "raw IPv4 (ICMP)": "socket.socket(2, 3, 1)",
  "raw IPv6 (ICMPv6)": "socket.socket(10, 3, 58)",
  "raw IPv4 (its own headers)": "socket.socket(2, 3, 255)",
  packet: "socket.socket(17, 3, 0x300)",
};
for (const [kind, source] of Object.entries(raw)) {
  test(`opens a socket: ${kind}`, async () => expectRefused(await probeOne(api, idOf("outbound"), source), "EPERM", "EAFNOSUPPORT", "EPROTONOSUPPORT"));
}

test("calls Podman's service, by its path, through the first process or by a name without a path", async () => {
  const { runtimeDir } = await preparedInstance();
  // It runs for a while after this.
  await sandboxes.make();
  const paths = podmanSockets(runtimeDir);
  assert.ok(paths.length > 0);
  const ways = paths.flatMap((path) => [path, `/proc/1/root${path}`, `\\0${path}`]);
  const attempts = Object.fromEntries(ways.map((way) => [way, `socket.socket(1, 1, 0).connect("${way}")`]));
  for (const outcome of Object.values(await probe(api, idOf("outbound"), attempts))) expectRefused(outcome, "ENOENT", "ECONNREFUSED");
});
