/** Cookies for the web pages. */
import type { Config } from "../../shared/config.ts";

/** The value of one cookie in a `Cookie` header. */
export function cookieOf(header: string, wanted: string): string | undefined {
  for (const part of header.split(";")) {
    const [name, value] = part.trim().split("=", 2);
    if (name === wanted && value) return value;
  }
  return undefined;
}

/** What says that browsers reach the gateway over HTTPS. */
export type Secured = Pick<Config, "publicUrl" | "tlsCertificate">;

/** A `Set-Cookie` value. Scripts and other sites cannot use the cookie; where browsers come over HTTPS, it is sent over that only. */
export function cookieLine(name: string, value: string, maxAgeS: number, { publicUrl, tlsCertificate }: Secured): string {
  const isSecure = publicUrl.startsWith("https:") || (!publicUrl && tlsCertificate !== "");
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}
