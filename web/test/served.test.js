import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const web = new URL("../", import.meta.url);
const list = (folder) => readdirSync(new URL(`${folder}/`, web), { recursive: true }).map((f) => `${folder}/${f}`);
const files = [...list("demo"), ...list("client")];
const modules = files.filter((f) => f.endsWith(".js"));
const pages = files.filter((f) => f.endsWith(".html"));
const read = (file) => readFileSync(new URL(file, web), "utf8");

/** Where an absolute address of the pages stands in the repository. */
const stored = (address) => address.replace(/[#?].*/, "").replace(/^\/assets\//, "demo/").replace(/^\/client\//, "client/");

test("every module parses", () => {
  for (const file of modules) execFileSync(process.execPath, ["--check", fileURLToPath(new URL(file, web))]);
});

test("every import leads to a file, and names what the file exports", () => {
  for (const file of modules) {
    for (const [, names, from] of read(file).matchAll(/(?:import|export) (?:\{([^}]*)\}|\w+|\*) from "([^"]+)"/g)) {
      const target = new URL(from, new URL(file, web));
      assert.ok(existsSync(target), `${file}: ${from}`);
      const source = readFileSync(target, "utf8");
      for (const name of (names ?? "").split(",").map((n) => n.trim()).filter(Boolean)) {
        assert.match(source, new RegExp(`export (?:async )?(?:class|function\\*?|const) ${name.replace("$", "\\$")}\\b|export const \\${name} |export \\{[^}]*\\b${name}\\b`), `${file}: ${name}`);
      }
    }
  }
});

test("every address in pages, styles and modules leads to a file", () => {
  for (const file of files.filter((f) => /\.(html|css|js)$/.test(f))) {
    for (const [address] of read(file).matchAll(/\/(?:assets|client)\/[\w./-]+\.(?:js|css|svg)/g)) {
      assert.ok(existsSync(new URL(stored(address), web)), `${file}: ${address}`);
    }
  }
});

test("pages hold nothing that the policy forbids: no inline script, style or handler, nothing from elsewhere", () => {
  for (const file of pages) {
    const html = read(file);
    assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|javascript:/i, file);
    assert.doesNotMatch(html, /<script(?![^>]*\ssrc="\/)/i, file);
    assert.doesNotMatch(html, /(?:src|href)="(?:https?:)?\/\//i, file);
  }
});

test("text goes in by textContent alone", () => {
  for (const file of modules) assert.doesNotMatch(read(file), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, file);
});

test("models and client know no document", () => {
  const free = modules.filter((f) => f.startsWith("client/") || f.startsWith("demo/models/"));
  assert.ok(free.length > 20);
  for (const file of free) assert.doesNotMatch(read(file), /\bdocument\.|\bwindow\.|localStorage|from "\.\.\/views/, file);
});

test("every icon that is named is drawn", () => {
  const drawn = new Set([...read("demo/icons.svg").matchAll(/id="(\w+)"/g)].map((m) => m[1]));
  for (const file of [...modules, ...pages]) {
    for (const [, name] of read(file).matchAll(/icons\.svg#(\w+)|icon\("(\w+)"\)/g)) {
      if (name) assert.ok(drawn.has(name), `${file}: ${name}`);
    }
  }
});
