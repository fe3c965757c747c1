/** Limits by address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressLimit, networkOf } from "../../../../gateway/limit/addresses.ts";

test("all addresses of an IPv6 network of 64 bits are one, however they are written; IPv4 addresses are themselves", () => {
  for (const address of ["2001:db8::1", "2001:0db8:0:0:ffff::2", "2001:db8:0:0:1:2:3:4", "2001:db8::"]) assert.equal(networkOf(address), "8193:3512:0:0");
  assert.notEqual(networkOf("2001:db8:0:1::1"), networkOf("2001:db8::1"));
  assert.equal(networkOf("::1"), "0:0:0:0");
  assert.equal(networkOf("192.0.2.7"), "192.0.2.7");
  assert.equal(networkOf("::ffff:192.0.2.7"), "::ffff:192.0.2.7");
});

test("an address has so many tries in a window, and does not use up those of another one", () => {
  const limit = new AddressLimit(3, 60_000, "too many tries");
  for (let tries = 0; tries < 3; tries++) limit.take("192.0.2.1");
  assert.throws(() => limit.take("192.0.2.1"), /too many tries; try again in \d+ seconds/);
  assert.throws(() => limit.refuseExhausted("192.0.2.1"), { code: "rate_limited" });
  limit.refuseExhausted("192.0.2.2");
  limit.take("192.0.2.2");
});
