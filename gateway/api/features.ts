/** The optional parts of the product that this version has, as the web page asks for them. */
export const features: readonly string[] = ["snapshots", "sessions"];
