/** Accounts are stored, on a real nats-server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newAccount, storeAccount, storeSignedUp } from "../../../../gateway/accounts/accounts.ts";
import { loginKeyOf } from "../../../../gateway/accounts/login-attempts.ts";
import { openRecords } from "../../../../gateway/accounts/records.ts";
import { loadConfig } from "../../../../shared/config.ts";
import { atEnd, fixture } from "../../../helpers/fixture.ts";
import { quiet, startNats } from "../../../helpers/nats.ts";

const nats = await fixture(startNats());
const config = loadConfig({ SANDGATE_FIRST_ACCOUNT_OPERATOR: "true" });
const records = await openRecords(await nats.connect(), config, quiet);
atEnd(() => records.stop());

test("neither the first account that an operator makes nor a later one that signs up becomes an operator", async () => {
  const [made, signedUp] = [newAccount("ann@example.com"), newAccount("bob@example.com")];
  assert.equal(await storeAccount(records, made, "as stored"), true);
  await records.logins.caughtUp();
  assert.equal(await storeSignedUp(records, config, signedUp, "as stored"), true);
  for (const { id } of [made, signedUp]) assert.equal((await records.accounts.read(id))?.operator, undefined);
  assert.equal(await storeAccount(records, newAccount(" ANN@example.com"), "another"), false);
  assert.equal((await records.logins.read(loginKeyOf("ann@example.com")))?.account_id, made.id);
});
