/** What restored sandboxes and clones hold without a volume. */
import { contentTests } from "./content.ts";

await contentTests("snap-content-folders", { SANDGATE_VOLUME: "none" });
