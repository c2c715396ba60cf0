// Builds the page into extender/web/assets, with the digest of what it was built from: tests compare it.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const target = "../extender/web/assets";

function sources() {
  const files = readdirSync("src", { recursive: true, withFileTypes: true });
  const names = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  return ["package-lock.json", "build.mjs", ...names].sort();
}

const digest = createHash("sha256");
for (const name of sources()) digest.update(`${name}\0`).update(readFileSync(name)).update("\0");

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
await build({
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "linked",
  outdir: target,
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) cpSync(join("src", name), join(target, name));
writeFileSync(join(target, "sources.sha256"), `${digest.digest("hex")}\n`);
