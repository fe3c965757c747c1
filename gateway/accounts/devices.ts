/**
 * Device cookies identify browsers that have logged in to an account before. They may still try passwords when unknown clients
 * are locked out. The cookie does not log in. https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Config } from "../../shared/config.ts";
import type { LoginRecord } from "../../shared/schemas/records.ts";
import { cookieLine, cookieOf } from "../http/cookies.ts";

const cookieName = "sandgate_device";
const lifeS = 31_536_000;

/** The device id, if the `Cookie` header proves that the device has logged in with the account's current password. */
export function deviceOf(cookieHeader: string, login: LoginRecord | undefined): string | undefined {
  const [device = "", proof = ""] = cookieOf(cookieHeader, cookieName)?.split(".", 2) ?? [];
  if (!login || !device || !proof) return undefined;
  const [expected, given] = [Buffer.from(proofOf(device, login)), Buffer.from(proof)];
  return expected.length === given.length && timingSafeEqual(expected, given) ? device : undefined;
}

/** The `Set-Cookie` header for a browser that has just logged in; undefined if the device is already known. */
export function knownDevice(cookieHeader: string, login: LoginRecord, { publicUrl }: Pick<Config, "publicUrl">): string | undefined {
  if (deviceOf(cookieHeader, login) !== undefined) return undefined;
  const device = randomBytes(16).toString("base64url");
  return cookieLine(cookieName, `${device}.${proofOf(device, login)}`, lifeS, publicUrl);
}

/** Proves a device, keyed with the stored password hash, which only gateways know and which changes with the password. */
function proofOf(device: string, { account_id, password }: LoginRecord): string {
  return createHmac("sha256", password).update(`device ${account_id} ${device}`).digest("base64url");
}
