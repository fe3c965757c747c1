/** Identities on the bus, compared with the library of NATS. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccount, createUser, fromPublic, fromSeed } from "@nats-io/nkeys";
import { nkeyAuthenticator, publicNkey } from "../../../../shared/bus/nkey.ts";

const seedOf = (user = createUser()): string => Buffer.from(user.getSeed()).toString();

test("the public key is that of the library", () => {
  for (let i = 0; i < 20; i++) {
    const seed = seedOf();
    assert.equal(publicNkey(seed), fromSeed(Buffer.from(seed)).getPublicKey());
  }
});

test("a challenge is signed so that the library accepts it", () => {
  const seed = seedOf();
  const { nkey, sig } = nkeyAuthenticator(seed)("challenge") as { nkey: string; sig: string };
  assert.equal(nkey, publicNkey(seed));
  assert.ok(fromPublic(nkey).verify(Buffer.from("challenge"), Buffer.from(sig, "base64")));
  assert.ok(!fromPublic(nkey).verify(Buffer.from("challengE"), Buffer.from(sig, "base64")));
});

test("what is no seed is refused", () => {
  const seed = seedOf();
  for (const text of ["", "SU", seed.slice(0, -1), `${seed.slice(0, -1)}1`, publicNkey(seed)]) assert.throws(() => publicNkey(text), text);
  assert.match(publicNkey(seedOf(createAccount())), /^U/, "any key can be a user's");
});
