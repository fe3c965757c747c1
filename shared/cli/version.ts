/** The version in package.json, which the build puts in its place; run from the sources, it has none. */
declare const SANDGATE_VERSION: string | undefined;
export const version = typeof SANDGATE_VERSION === "string" ? SANDGATE_VERSION : "0.0.0";
