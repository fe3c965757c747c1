import assert from "node:assert/strict";
import { scryptSync } from "node:crypto";
import { test } from "node:test";
import { Passwords } from "../../../../gateway/accounts/passwords.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { SandgateError } from "../../../../shared/errors.ts";

const passwords = new Passwords(loadConfig().testPasswordCost);
const format = /^scrypt\$32768\$8\$1\$[\w-]{22}\$[\w-]{43}$/;

test("a password is verified against what was stored for it, and no other is", async () => {
  const stored = await passwords.hash("correct horse battery");
  assert.match(stored, format);
  assert.ok(!stored.includes("horse"));
  assert.equal(await passwords.verify("correct horse battery", stored), true);
  for (const wrong of ["correct horse batter", "correct horse battery ", "Correct horse battery", "", stored]) {
    assert.equal(await passwords.verify(wrong, stored), false, wrong);
  }
});

test("the same password is stored as another text each time", async () => {
  const [one, other] = await Promise.all([passwords.hash("the same password"), passwords.hash("the same password")]);
  assert.notEqual(one, other);
});

test("characters count as the same however they were composed", async () => {
  const stored = await passwords.hash("pa\u00dfw\u00f6rter");
  assert.equal(await passwords.verify("pa\u00dfwo\u0308rter", stored), true);
});

test("the parameters that were stored are those that count", async () => {
  const salt = Buffer.alloc(16, 7);
  const hash = scryptSync("older password", salt, 32, { N: 1_024, r: 4, p: 2 });
  const stored = `scrypt$1024$4$2$${salt.toString("base64url")}$${hash.toString("base64url")}`;
  assert.equal(await passwords.verify("older password", stored), true);
  assert.equal(await passwords.verify("other password", stored), false);
});

test("where nothing is stored no password is right", async () => {
  assert.equal(await passwords.verify("any password at all"), false);
  assert.equal(await passwords.verify(""), false);
});

test("a damaged text is an error and lets nobody in", async () => {
  const stored = await passwords.hash("correct horse battery");
  for (const damaged of ["", "scrypt$32768$8$1$$", stored.slice(0, -20), stored.replace("scrypt", "plain"), stored.replace("32768", "32767")]) {
    await assert.rejects(passwords.verify("correct horse battery", damaged), damaged);
  }
});

test("a flood is refused beyond a bounded line, and the line empties", async () => {
  const cheap = new Passwords(8);
  const all = await Promise.allSettled(Array.from({ length: 40 }, () => cheap.verify("x".repeat(200))));
  const refused = all.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
  assert.equal(refused.length, 6);
  for (const error of refused) assert.ok(error instanceof SandgateError && error.code === "unavailable");
  assert.equal(await cheap.verify("once more"), false);
});
