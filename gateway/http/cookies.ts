/** Cookies for the web pages. */

/** The value of one cookie in a `Cookie` header. */
export function cookieOf(header: string, wanted: string): string | undefined {
  for (const part of header.split(";")) {
    const [name, value] = part.trim().split("=", 2);
    if (name === wanted && value) return value;
  }
  return undefined;
}

/** A `Set-Cookie` value. Scripts and other sites cannot use the cookie; with an https public URL it is sent over https only. */
export function cookieLine(name: string, value: string, maxAgeS: number, publicUrl: string): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${publicUrl.startsWith("https:") ? "; Secure" : ""}`;
}
