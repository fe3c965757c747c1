/** The pure parts of starting commands and of closing networks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { execa } from "execa";
import { shellArguments } from "../../../../worker/runtime/container/oci.ts";
import { nftRules, refusingRoutes } from "../../../../worker/runtime/network/network.ts";

const argumentBytesMax = 131_072;

test("a command is one argument as long as Linux accepts it as one", () => {
  assert.deepEqual(shellArguments("echo hi"), ["/bin/sh", "-c", "--", "echo hi"]);
  const longest = "x".repeat(argumentBytesMax - 1);
  assert.deepEqual(shellArguments(longest), ["/bin/sh", "-c", "--", longest]);
});

for (const character of ["x", "ß", "€", "😀"]) {
  test(`a longer command of '${character}' is split between characters into arguments that Linux accepts`, () => {
    const command = character.repeat(argumentBytesMax / Buffer.byteLength(character) + 1);
    const [first = "", second = ""] = shellArguments(command).slice(-2);
    assert.equal(first + second, command);
    for (const part of [first, second]) assert.ok(part.isWellFormed() && Buffer.byteLength(part) < argumentBytesMax);
  });
}

test("a command in two parts runs like one in a single part, including quotes and arguments", async () => {
  const filler = `: '${"€".repeat(50_000)}'`;
  const [file = "", ...args] = shellArguments(`${filler}\nprintf '%s,' "$0" "$#" "$@" 'a  b' "$(echo c)"; exit 3`);
  const { stdout, exitCode } = await execa(file, args, { reject: false });
  assert.deepEqual([stdout, exitCode], ["/bin/sh,0,a  b,c,", 3]);
});

const closed = [
  "10.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "168.63.129.16/32",
  "192.0.0.0/24",
  "224.0.0.0/3",
  "8.8.4.4",
];

test("the rules close every private range, cloud addresses, the host's own addresses and IPv6, and open the resolver before that", () => {
  const rules = nftRules(["8.8.4.4"], "used");
  for (const range of closed) assert.ok(rules.includes(range), range);
  assert.ok(rules.indexOf("dport 53 accept") < rules.indexOf("@closed reject"));
  assert.match(rules, /meta nfproto ipv6 reject/);
});

test("without nftables, routes refuse the same, except for the sandbox's own loopback", () => {
  const routes = refusingRoutes(["8.8.4.4", "127.0.0.1"]).trim().split("\n");
  for (const range of closed.filter((entry) => !entry.startsWith("127."))) assert.ok(routes.includes(`route replace unreachable ${range}`), range);
  assert.ok(!routes.some((route) => route.includes(" 127.")));
});
