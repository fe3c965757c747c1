/** Limits by address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressLimit, networkOf } from "../../../../gateway/limit/addresses.ts";

test("all addresses of an IPv6 network of 64 bits are one, however they are written; IPv4 addresses are themselves", () => {
  for (const address of ["2001:db8::1", "2001:0db8:0:0:ffff::2", "2001:db8:0:0:1:2:3:4", "2001:db8::"]) assert.equal(networkOf(address), "8193:3512:0:0");
  assert.notEqual(networkOf("2001:db8:0:1::1"), networkOf("2001:db8::1"));
  assert.equal(networkOf("::1"), "0:0:0:0");
  assert.equal(networkOf("192.0.2.7"), "192.0.2.7");
  assert.equal(networkOf("unknown"), "unknown");
});

test("IPv4 addresses of a socket that listens for both count each on its own, as the IPv4 address", () => {
  for (const address of ["::ffff:192.0.2.7", "::ffff:c000:207", "0000:0000:0000:0000:0000:ffff:c000:0207"]) assert.equal(networkOf(address), "192.0.2.7");
  const limit = new AddressLimit(1, 60_000, "too many tries");
  limit.take("0000:0000:0000:0000:0000:ffff:c000:0207");
  limit.take("0000:0000:0000:0000:0000:ffff:c000:0208");
  assert.throws(() => limit.take("192.0.2.7"), { code: "rate_limited" });
});

test("an address has so many tries in a window, and does not use up those of another one", () => {
  const limit = new AddressLimit(3, 60_000, "too many tries");
  for (let tries = 0; tries < 3; tries++) limit.take("192.0.2.1");
  assert.throws(() => limit.take("192.0.2.1"), /too many tries; try again in \d+ seconds/);
  assert.throws(() => limit.refuseExhausted("192.0.2.1"), { code: "rate_limited" });
  limit.refuseExhausted("192.0.2.2");
  limit.take("192.0.2.2");
});
