/** The version in package.json, which the build inserts. Undefined when run from the sources. */
declare const SANDGATE_VERSION: string | undefined;
export const version = typeof SANDGATE_VERSION === "string" ? SANDGATE_VERSION : "0.0.0";
