/**
 * Browsers that have logged in to an account before: a cookie says so, which lets them try passwords while strangers may
 * try no more. It logs nobody in. https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Config } from "../../shared/config.ts";
import type { LoginRecord } from "../../shared/schemas/records.ts";
import { cookieLine, cookieOf } from "../http/cookies.ts";

const cookieName = "sandgate_device";
const lifeS = 31_536_000;

/** The device's own name, where a `Cookie` header shows that it has logged in with the password that the account has now. */
export function deviceOf(cookieHeader: string, login: LoginRecord | undefined): string | undefined {
  const [device = "", proof = ""] = cookieOf(cookieHeader, cookieName)?.split(".", 2) ?? [];
  if (!login || !device || !proof) return undefined;
  const [expected, given] = [Buffer.from(proofOf(device, login)), Buffer.from(proof)];
  return expected.length === given.length && timingSafeEqual(expected, given) ? device : undefined;
}

/** The `Set-Cookie` header for a browser that has just shown the password; undefined when it is known already. */
export function knownDevice(cookieHeader: string, login: LoginRecord, { publicUrl }: Pick<Config, "publicUrl">): string | undefined {
  if (deviceOf(cookieHeader, login) !== undefined) return undefined;
  const device = randomBytes(16).toString("base64url");
  return cookieLine(cookieName, `${device}.${proofOf(device, login)}`, lifeS, publicUrl);
}

/** What is stored of the password is known to the gateways only, and changes with the password. */
function proofOf(device: string, { account_id, password }: LoginRecord): string {
  return createHmac("sha256", password).update(`device ${account_id} ${device}`).digest("base64url");
}
